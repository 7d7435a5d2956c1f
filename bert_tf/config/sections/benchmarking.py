"""The section of `bench`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import Section, option
from bert_tf.config.sections.loop import PRECISIONS

GLUE = "glue"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchConfig(Section):
    """Fine-tunes a model for the tasks of a benchmark and measures it as the benchmark does."""

    section_name: ClassVar[str] = "bench"

    suite: str = option("benchmark", positional=True, choices=(GLUE,))
    init: str = option(
        "model directory, run directory or HuggingFace folder to measure", reads="model"
    )
    data: str = option(
        "folder with a folder per task, as the benchmark is published", reads="folder"
    )
    output: str = option("directory to write a run per task and results to", writes="folder")
    tasks: tuple[str, ...] = option(
        "a task, such as RTE; repeatable (default: those that the data have)",
        default=(),
        flag="--task",
        common=True,
    )
    seeds: int = option(
        "runs per task with consecutive seeds, the first of them `seed`",
        default=3,
        minimum=1,
        maximum=1000,
    )
    epochs: float = option(
        "passes over the training rows", default=3.0, above=0.0, maximum=1_000_000.0
    )
    batch_size: int = option("rows per step", default=32, minimum=1, maximum=1_000_000)
    learning_rate: float = option("peak learning rate", default=5e-5, above=0.0, maximum=1.0)
    max_seq_length: int = option(
        "maximum tokens per sequence, including [CLS] and [SEP]", default=128, minimum=3
    )
    max_train_rows: int = option(
        "use only the first rows of each task (0: all)", default=0, minimum=0, advanced=True
    )
    precision: str = option(
        "numeric precision of the layers (auto: the fastest on this machine)",
        default="auto",
        choices=PRECISIONS,
        advanced=True,
    )
    seed: int = option("random seed of the first run; any integer", default=1)

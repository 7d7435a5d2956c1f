"""What GLUE's files hold, and what its tasks are measured by."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ACCURACY, F1, MATTHEWS = "accuracy", "f1", "matthews_correlation"
PEARSON, SPEARMAN = "pearson", "spearman"
_POSITIVE = "1"  # the label whose F1 is MRPC's and QQP's


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlueTask:
    """A task of GLUE, in the folder of the same name.

    Attributes:
        name: of the task and its folder.
        task: of `finetune`.
        text, text_pair, label: columns; numbers where the files have no header.
        metrics: by which GLUE measures it; its score is their mean.
        eval: the file of labeled rows that are not for training.
        further_eval: another one, measured with the same model; None without.
        header: whether the first line names the columns.
    """

    name: str
    task: str = "classification"
    text: str = "sentence"
    text_pair: str | None = None
    label: str = "label"
    metrics: tuple[str, ...] = (ACCURACY,)
    eval: str = "dev.tsv"
    further_eval: str | None = None
    header: bool = True

    def files(self, folder: Path) -> list[Path]:
        """Those it is trained and measured with."""
        names = ["train.tsv", self.eval, *filter(None, [self.further_eval])]
        return [folder / self.name / name for name in names]

    @property
    def selection_metric(self) -> str:
        """The metric of `finetune` that chooses the best epoch."""
        return ACCURACY if self.metrics[0] == F1 else self.metrics[0]


GLUE_TASKS = (
    GlueTask(name="CoLA", text="4", label="2", metrics=(MATTHEWS,), header=False),
    GlueTask(name="SST-2"),
    GlueTask(
        name="MRPC",
        text="#1 String",
        text_pair="#2 String",
        label="Quality",
        metrics=(F1, ACCURACY),
    ),
    GlueTask(
        name="STS-B",
        task="regression",
        text="sentence1",
        text_pair="sentence2",
        label="score",
        metrics=(PEARSON, SPEARMAN),
    ),
    GlueTask(
        name="QQP",
        text="question1",
        text_pair="question2",
        label="is_duplicate",
        metrics=(F1, ACCURACY),
    ),
    GlueTask(
        name="MNLI",
        text="sentence1",
        text_pair="sentence2",
        label="gold_label",
        eval="dev_matched.tsv",
        further_eval="dev_mismatched.tsv",
    ),
    GlueTask(name="QNLI", text="question", text_pair="sentence"),
    GlueTask(name="RTE", text="sentence1", text_pair="sentence2"),
    GlueTask(name="WNLI", text="sentence1", text_pair="sentence2"),
)


def glue_metrics(task: GlueTask, measured: Mapping[str, Any]) -> dict[str, float]:
    """GLUE's metrics of a task, in points of 100.

    Args:
        task: what was measured.
        measured: metrics and details, as `metrics.json` has them.
    """
    values = {
        name: measured["labels"][_POSITIVE]["f1"] if name == F1 else measured[name]
        for name in task.metrics
    }
    return {name: 100 * float(value) for name, value in values.items()}

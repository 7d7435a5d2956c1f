"""The options of tasks that can learn from a teacher's predictions (Hinton et al. 2015)."""

from __future__ import annotations

import dataclasses

from bert_tf.config.section import option
from bert_tf.config.sections.finetuning import Teaching
from bert_tf.tasks.tables.table_options import TableTaskConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillationConfig(TableTaskConfig):
    """Fine-tunes on labels, or on them and on what a larger model predicts."""

    teacher: str | None = option(
        "run or model directory, fine-tuned for the same task, whose predictions are learned as "
        "well",
        default=None,
        reads="model",
    )
    unlabeled: str | None = option(
        "rows without labels that are learned from the teacher alone", default=None, reads="table"
    )
    distill_weight: float = option(
        "with --teacher: fraction of the loss that is the distance to its predictions; the rest is "
        "the loss of the labels",
        default=0.5,
        minimum=0.0,
        maximum=1.0,
    )

    def faults(self) -> list[str]:
        """Rejects rows that nothing could be learned from."""
        faults = super().faults()
        if self.unlabeled is not None and not (self.teacher and self.distill_weight):
            faults.append(
                "unlabeled: such rows are learned from a teacher; give --teacher and a "
                "--distill-weight above 0, or leave it out"
            )
        return faults

    @property
    def more_inputs(self) -> dict[str, str | None]:
        """The teacher and the rows without labels."""
        return {"teacher": self.teacher, "unlabeled": self.unlabeled}

    @property
    def teaching(self) -> Teaching | None:
        """By the options."""
        if self.teacher is None:
            return None
        return Teaching(
            teacher=self.teacher,
            unlabeled=self.unlabeled,
            weight=self.distill_weight,
            temperature=self._temperature,
        )

    @property
    def _temperature(self) -> float:
        return 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class SoftLabelConfig(DistillationConfig):
    """The same for tasks whose predictions are probabilities."""

    distill_temperature: float = option(
        "with --teacher: what the logits of both models are divided by before they are compared",
        default=2.0,
        above=0.0,
        maximum=100.0,
    )

    @property
    def _temperature(self) -> float:
        return self.distill_temperature

"""The section of `label-errors`; a task that finds them adds its own keys of fine-tuning."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import option
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.training.tracking.registry import TRACKERS


def no_trackers() -> tuple[str, ...]:
    """The key `report_to` of a section whose models are not kept."""
    return option(
        "not used: the models are gone when all rows are checked",
        default=(),
        choices=TRACKERS,
        advanced=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelErrorsConfig(FinetuneConfig):
    """Finds rows whose label is likely wrong, by models that were fine-tuned on other rows."""

    section_name: ClassVar[str] = "label_errors"

    eval: str | None = option(
        "not used: all rows of --train are checked", default=None, advanced=True
    )
    eval_fraction: float = option(
        "not used: all rows of --train are checked",
        default=0.0,
        minimum=0.0,
        maximum=0.0,
        advanced=True,
    )
    report_to: tuple[str, ...] = no_trackers()
    folds: int = option(
        "parts of the rows; each is predicted by a model that is fine-tuned on all others",
        default=5,
        minimum=2,
        maximum=100,
    )

    def faults(self) -> list[str]:
        """Refuses rows to evaluate on: every row is evaluated, when it is held out."""
        faults = super().faults()
        if self.eval is not None:
            faults.append("eval: is not used, since all rows of --train are checked; leave it out")
        if self.report_to:
            faults.append(
                "report_to: is not used, since no model is kept; leave it out, or use finetune"
            )
        return faults

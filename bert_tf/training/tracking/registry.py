"""Trackers by their names in a config; one is imported when a run reports to it."""

from __future__ import annotations

import dataclasses
import importlib
from typing import TYPE_CHECKING, ClassVar

from bert_tf.config.registries import TENSORBOARD, Entry, by_name

if TYPE_CHECKING:
    from bert_tf.training.tracking.tracker import TrackedRun, Tracker


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackerEntry(Entry):
    """A tracker, which is imported only when a run reports to it.

    Attributes:
        module: has the function `open_tracker`, see `Tracker`.
    """

    request: ClassVar[str] = "report_to {}"
    instead: ClassVar[str] = "leave it out of report_to"

    module: str  # with the function `open_tracker`

    def open(self, run: TrackedRun) -> Tracker:
        """Import the tracker and open its run."""
        return importlib.import_module(self.module).open_tracker(run)


TRACKERS: dict[str, TrackerEntry] = by_name(
    # TensorFlow itself writes its files.
    TrackerEntry(name=TENSORBOARD, module="bert_tf.training.tracking.tensorboard_events"),
    TrackerEntry(
        name="mlflow", module="bert_tf.training.tracking.mlflow_run", packages=("mlflow",)
    ),
    TrackerEntry(name="wandb", module="bert_tf.training.tracking.wandb_run", packages=("wandb",)),
)

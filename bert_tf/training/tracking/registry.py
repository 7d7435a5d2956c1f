"""Trackers by their names in a config; one is imported when a run reports to it."""

from __future__ import annotations

import dataclasses
import importlib
from typing import TYPE_CHECKING

from bert_tf.base.errors import check_packages
from bert_tf.config.registries import TENSORBOARD

if TYPE_CHECKING:
    from bert_tf.training.tracking.tracker import TrackedRun, Tracker


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackerEntry:
    """A tracker that need not be imported, or installed, to be known.

    `name` is also an extra with its packages; `module` has a function `open_tracker`.
    """

    name: str
    module: str
    packages: tuple[str, ...] = ()

    def check_installed(self) -> None:
        """Raises UsageError if a package is missing."""
        check_packages(
            f"report_to {self.name}",
            self.packages,
            extra=self.name,
            instead="leave it out of report_to",
        )

    def open(self, run: TrackedRun) -> Tracker:
        return importlib.import_module(self.module).open_tracker(run)


TRACKERS: dict[str, TrackerEntry] = {
    entry.name: entry
    for entry in (
        # TensorFlow itself writes its files.
        TrackerEntry(name=TENSORBOARD, module="bert_tf.training.tracking.tensorboard_events"),
        TrackerEntry(
            name="mlflow", module="bert_tf.training.tracking.mlflow_run", packages=("mlflow",)
        ),
        TrackerEntry(
            name="wandb", module="bert_tf.training.tracking.wandb_run", packages=("wandb",)
        ),
    )
}

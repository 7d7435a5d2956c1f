"""Trackers by their names in a config; one is imported when a run reports to it."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from bert_tf.base.errors import check_packages

if TYPE_CHECKING:
    from bert_tf.training.tracking.tracker import TrackedRun, Tracker


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackerEntry:
    """A tracker that need not be imported, or installed, to be known.

    Attributes:
        name: in configs, and of the extra with its packages.
        module: with the function `open_tracker`, from a `TrackedRun` to its `Tracker`.
        packages: that it imports.
    """

    name: str
    module: str
    packages: tuple[str, ...] = ()

    def load(self) -> Callable[[TrackedRun], Tracker]:
        opening: Callable[[TrackedRun], Tracker]
        opening = importlib.import_module(self.module).open_tracker
        return opening


TENSORBOARD = "tensorboard"
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


def check_installed(names: Iterable[str]) -> None:
    """Checks that a run can report to trackers before it starts.

    Raises:
        UsageError: the packages of one are missing.
    """
    for name in names:
        check_packages(
            f"report_to {name}",
            TRACKERS[name].packages,
            extra=name,
            instead="leave it out of report_to",
        )

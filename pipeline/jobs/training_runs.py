"""What the jobs that train have in common: several workers, and going on from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.artifacts import read_manifest
from pipeline.jobs.job import RunOptions


def train_along(output: str, options: RunOptions, train: Callable[[], object]) -> dict[str, Any]:
    """What a worker does that is not the chief: it trains, unless the run is finished.

    Returns:
        Nothing; the chief alone writes, the manifest too.
    """
    if read_manifest(output) is not None and not options.overwrite:
        options.console.say(f"{output} is finished already; nothing to do")
    else:
        train()
    return {}


def say_if_nothing_resumes(output: str, options: RunOptions) -> None:
    """Tells who asked for `--resume` that there is no checkpoint to go on from."""
    if options.resume and not (Path(output) / "checkpoints").is_dir():
        options.console.say(f"{output}: no checkpoint to resume from; starting at step 0")

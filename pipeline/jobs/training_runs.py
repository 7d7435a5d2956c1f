"""What the jobs that train have in common: several workers, and resuming from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bert_tf.config.sections.loop import LoopSection
from pipeline.outputs.identity import is_extended
from pipeline.outputs.job import RunOptions
from pipeline.outputs.manifest import read_manifest


def train_along(
    config: LoopSection,
    options: RunOptions,
    train: Callable[[], object],
    *,
    extendable_key: str | None,
) -> dict[str, Any]:
    """What a worker does that is not the chief: it trains, unless the run is finished.

    Returns:
        Nothing; the chief alone writes, the manifest too.
    """
    finished = read_manifest(config.output)
    if (
        finished is not None
        and not options.overwrite
        and not is_extended(finished["config"], config.as_dict(), extendable_key)
    ):
        options.console.info(f"{config.output} is finished already; nothing to do")
    else:
        train()
    return {}


def log_if_nothing_resumes(output: str, options: RunOptions) -> None:
    """Warns that `--resume` was given and there is no checkpoint to resume from."""
    if options.resume and not (Path(output) / "checkpoints").is_dir():
        options.console.info(f"{output}: no checkpoint to resume from; starting at step 0")

"""What the jobs that train have in common: several workers, resuming, and starting from a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bert_tf.base.console import Console
from bert_tf.config.model_files import model_folder
from bert_tf.config.sections.loop import LoopSection
from bert_tf.training.run.checkpoints import saved_progress
from pipeline.beam.stored_path import path_of
from pipeline.outputs.identity import is_extended
from pipeline.outputs.job import RunOptions
from pipeline.outputs.manifest import manifest_path, read_manifest
from pipeline.outputs.place import marker_path, read_marker


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
    if options.resume and not (path_of(output) / "checkpoints").is_dir():
        options.console.info(f"{output}: no checkpoint to resume from; starting at step 0")


def warn_of_unfinished_run(init: str, console: Console) -> None:
    """Warns if the model that a job starts from is of a run that is not finished.

    Args:
        init: model directory or run directory, as it was given.
        console: where the line goes.
    """
    model = model_folder(init)
    run = model.parent
    if model.name != "best" or manifest_path(run).exists():
        return
    if read_marker(marker_path(str(run), is_directory=True)) is None:
        return
    progress = saved_progress(run / "checkpoints")
    at = f", at step {progress[0]:,} of {progress[1]:,}" if progress else ""
    console.warn(
        f"--init {init}: its run is unfinished{at}; starting from its best model so far "
        "(to finish it first, run its command again)"
    )

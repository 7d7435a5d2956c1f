"""The folder of intermediate data in an unfinished output, and what of it can be used again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError, GraphWritten, RunnerFailed
from bert_tf.base.files import remove, write_text_atomically
from bert_tf.base.json_files import read_if_sound, sealed
from pipeline.beam.blobs import remove_unfinished_work
from pipeline.outputs.manifest import JOB_FILES

WORK_FOLDER = ".unfinished"
_IDENTITY = "identity.json"


def open_work_folder(output: Path, identity: dict[str, Any], console: Console) -> Path:
    """Makes the folder, or takes over that of an interrupted run of the very same work.

    Whatever else the output holds is removed, except the job's own notes: files that were not
    finished, and everything if the work was cut up otherwise or done by another version.

    Args:
        output: the unfinished output.
        identity: all that results follow from, as JSON; `inputs` are fingerprints.
        console: informed of what cannot be used.

    """
    work = output / WORK_FOLDER
    identity = json.loads(json.dumps(identity))
    is_new = not work.exists()
    if read_if_sound(work / _IDENTITY) == identity:
        remove_unfinished_work(work)
        return work
    if not is_new:
        console.info(f"{output}: of the unfinished run nothing can be used; starting again")
    for path in output.iterdir():
        if path.name not in JOB_FILES:
            remove(path)
    work.mkdir()
    write_text_atomically(work / _IDENTITY, sealed(identity))
    return work


@contextmanager
def keeping_finished_work(work: Path, console: Console) -> Iterator[None]:
    """Removes the folder if its work fails for good: on its input."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, RunnerFailed | GraphWritten) or not isinstance(
            error, BertPipelineError
        ):
            console.info(f"finished work is kept in {work}; the same command resumes from it")
        else:
            with suppress(OSError):
                remove(work)
        raise

"""`inspect --html` and `report`: pages of artifacts, which replace only pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.errors import UsageError
from pipeline.outputs.manifest import side_paths
from pipeline.outputs.place import OutputPlace, check_place
from pipeline.report.document import GENERATOR
from pipeline.report.page import artifact_page

_HEAD_CHARACTERS = 1000


def write_page(path: str, html: str, *, samples: int, overwrite: bool) -> None:
    """Writes the page of an artifact.

    Args:
        path: the artifact.
        html: file to write; an older page is replaced.
        samples: examples, rows or pieces to show.
        overwrite: replace any other file as well.

    Raises:
        UsageError: there is another file or a folder, or the artifact would be changed.
        InputError: as `artifact_page`.
    """
    _check_page_place(html, [path], flag="--html", overwrite=overwrite)
    write_text_atomically(html, artifact_page(path, samples=samples))


def write_runs_page(runs: Sequence[str], output: str, *, overwrite: bool) -> None:
    """Writes the page of runs.

    Args:
        runs: their folders.
        output: file to write; an older page is replaced.
        overwrite: replace any other file as well.

    Raises:
        UsageError: as `read_runs`; there is another file or a folder, or a run would be changed.
        InputError: as `read_runs` and `runs_page`.
    """
    from pipeline.report.runs.page import (
        runs_page,
    )  # TensorFlow, which pages of others need not load
    from pipeline.report.runs.run import read_runs

    found = read_runs(runs)
    _check_page_place(output, runs, flag="--output", overwrite=overwrite)
    write_text_atomically(output, runs_page(found))


def _check_page_place(page: str, artifacts: Sequence[str], *, flag: str, overwrite: bool) -> None:
    beside = [str(side) for path in artifacts for side in side_paths(path) if side.exists()]
    place = OutputPlace(output=page, is_directory=False)
    check_place(place, [*artifacts, *beside], flag=flag)
    if place.path.exists() and not overwrite and not _is_page(place.path):
        raise UsageError(
            f"{flag} {page}: exists and is no page of this command; name another or replace it "
            "with --overwrite"
        )


def _is_page(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return GENERATOR in stream.read(_HEAD_CHARACTERS)

"""`inspect --html`: the page of an artifact, which replaces only a page."""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.errors import UsageError
from pipeline.outputs.manifest import side_paths
from pipeline.outputs.place import OutputPlace, check_place
from pipeline.report.page import GENERATOR, artifact_page

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
    artifact = [path, *(str(side) for side in side_paths(path) if side.exists())]
    place = OutputPlace(output=html, is_directory=False)
    check_place(place, artifact, flag="--html")
    if place.path.exists() and not overwrite and not _is_page(place.path):
        raise UsageError(
            f"--html {html}: exists and is no page of this command; name another or replace it "
            "with --overwrite"
        )
    write_text_atomically(html, artifact_page(path, samples=samples))


def _is_page(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return GENERATOR in stream.read(_HEAD_CHARACTERS)

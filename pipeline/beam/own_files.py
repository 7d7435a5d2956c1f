"""Files made by this tool, which globs do not take as input."""

from __future__ import annotations

import codecs
import functools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf.base.files import RemotePath
from pipeline.beam.globs import GLOB_MARK, list_local
from pipeline.beam.stored_path import path_of

# A manifest, lists of rows and a page: in an output folder, or beside a file after its name.
MANIFEST = "manifest.json"
REJECTS = "rejects.jsonl"
DUPLICATES = "duplicates.jsonl"
DROPPED = "dropped.jsonl"
EXCLUDED = "excluded.jsonl"
PAGE = "report.html"
SIDES = (MANIFEST, REJECTS, DUPLICATES, DROPPED, EXCLUDED, PAGE)
_MARKER = "config.yaml"
_SIDE_ENDINGS = tuple(f".{name}" for name in (*SIDES, "job.log"))
# Commands that make tables, which other commands read.
_MAKE_TABLES = ("score", "embed", "summarize", "search")
_VOCABULARY_LINES = frozenset((b"[PAD]", b"[UNK]"))
# Up to so many files are opened to find vocabularies; among more, only files with such a name.
_FEW_FILES = 1000
_VOCABULARY_HEAD_BYTES = 4096  # in Google's, [UNK] follows 99 unused entries


def own_files(paths: Collection[str], pattern: str, output: str | None = None) -> list[str]:
    """List the files matched by a glob that are no input of a job, sorted; [] for a path.

    These are its output, vocabularies, the content of folders of records, runs and models,
    manifests, lists of text or rows left out, and tables made from other files that match.

    Args:
        paths: the files matched.
        pattern: the path or glob.
        output: of the job; None if it has none.
    """
    glob = GLOB_MARK.search(f"{pattern}*" if pattern.endswith("/") else pattern)
    if glob is None or pattern in paths:
        return []
    top = path_of(pattern[: glob.start()].rpartition("/")[0])
    # Computed once, and only if there is a manifest: resolving 100,000 paths takes time.
    sources = functools.cache(lambda: frozenset(str(path_of(path).resolve()) for path in paths))
    target = None if output is None else _made_output(path_of(output))
    manifests_of_folder = functools.cache(lambda folder: _manifests_of_folder(folder, top))
    manifests_of_files = functools.cache(_manifests_of_files)

    def is_own(path: str) -> bool:
        place = path_of(path)
        if target is not None and target in (place.resolve(), *place.resolve().parents):
            return True
        for ending in _SIDE_ENDINGS:
            owner = place.name.removesuffix(ending)
            if owner in ("", place.name):
                continue
            if owner in manifests_of_files(place.parent):
                return True
            if _manifest(place.with_name(owner) / MANIFEST) is not None:
                return True
        manifests = [*manifests_of_folder(place.parent)]
        manifests += manifests_of_files(place.parent).get(place.name, ())
        if any(_is_no_input(manifest, place, sources) for manifest in manifests):
            return True
        may_open = len(paths) <= _FEW_FILES and not isinstance(place, RemotePath)
        return (may_open or "vocab" in place.name) and is_vocabulary(place)

    return sorted(filter(is_own, paths))


def _made_output(output: Path) -> Path | None:
    """Return an existing output; None if there is none, or another tool made it."""
    endings = (f".{MANIFEST}", f"/{MANIFEST}", f"/{_MARKER}")
    places = (output.parent / f"{output.name}{ending}" for ending in endings)
    return output.resolve() if any(place.exists() for place in places) else None


def _manifests_of_folder(folder: Path, top: Path) -> list[Mapping[str, Any]]:
    """Return the manifests of a folder, and of the folders around it up to `top`."""
    around = [parent for parent in folder.parents if parent.is_relative_to(top)]
    places = [folder, *(parent for parent in around if parent != Path())]
    manifests = (_manifest(place / MANIFEST) for place in places)
    return [manifest for manifest in manifests if manifest is not None]


def _manifests_of_files(folder: Path) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Return the manifests beside files, by the name of the file."""
    ending = f".{MANIFEST}"
    listed = list_local
    if isinstance(folder, RemotePath):
        from pipeline.beam.storage import list_stored as listed  # Beam: local files need none
    paths = map(path_of, listed(f"{folder}/*{ending}"))
    read = {path.name.removesuffix(ending): _manifest(path) for path in paths}
    return {name: (manifest,) for name, manifest in read.items() if manifest is not None}


def _manifest(path: Path) -> Mapping[str, Any] | None:
    """Read a manifest of this tool; None for anything else."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # The manifests of browser extensions also have a `manifest_version`.
    is_own = isinstance(manifest, dict) and {"manifest_version", "command"} <= manifest.keys()
    return manifest if is_own else None


def _is_no_input(
    manifest: Mapping[str, Any], place: Path, sources: Callable[[], Collection[str]]
) -> bool:
    """Return whether a file with a manifest is no input of another job.

    Only tables are inputs, unless they were made from files that the glob matches, too.
    """
    if manifest.get("command") not in _MAKE_TABLES:
        return True
    for item in manifest.get("inputs", []):
        candidates = _places(item["path"], place) if "path" in item else ()
        if any(str(candidate) in sources() for candidate in candidates):
            return True
    return False


def _places(path: str, place: Path) -> Iterator[Path]:
    """Yield candidates for a recorded input: from the working directory, or above an output."""
    if "://" in path:
        yield path_of(path).resolve()
        return
    for folder in (Path(), *place.absolute().parents):
        yield (folder / path).resolve()


def is_vocabulary(path: Path) -> bool:
    """Return whether a file begins as a WordPiece vocabulary does."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_VOCABULARY_HEAD_BYTES)
    except OSError:
        return False
    lines = head.removeprefix(codecs.BOM_UTF8).splitlines()
    # A text on BERT may have both in lines of their own, but also lines with several words.
    return _VOCABULARY_LINES.issubset(lines) and not any(b" " in line.strip() for line in lines)

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
# What these make are rows again, which other commands read.
_MAKE_TABLES = ("score", "embed", "summarize", "search")
_VOCABULARY_LINES = frozenset((b"[PAD]", b"[UNK]"))
_FEW_FILES = 1000  # all of them are looked into; of more those that are named as one
_VOCABULARY_HEAD_BYTES = 4096  # of Google's, [UNK] follows 99 unused entries


def own_files(paths: Collection[str], pattern: str, output: str | None = None) -> list[str]:
    """List the files matched by a glob that are no input of a job, sorted; none of a path.

    These are its output, vocabularies, the content of folders of records, runs and models,
    manifests, lists of what was left out, and tables made from files that the glob matches too.

    Args:
        paths: the files matched.
        pattern: the path or glob.
        output: of the job; None if it has none.
    """
    glob = GLOB_MARK.search(f"{pattern}*" if pattern.endswith("/") else pattern)
    if glob is None or pattern in paths:
        return []
    top = path_of(pattern[: glob.start()].rpartition("/")[0])
    # Cached, and asked for where there is a manifest only: 100,000 files take their time.
    sources = functools.cache(lambda: frozenset(str(path_of(path).resolve()) for path in paths))
    target = None if output is None else _made_output(path_of(output))
    manifests_of_folder = functools.cache(lambda folder: _manifests_of_folder(folder, top))
    manifests_of_files = functools.cache(_manifests_of_files)

    def is_own(path: str) -> bool:
        place = path_of(path)
        if target is not None and target in (place.resolve(), *place.resolve().parents):
            return True
        for ending in _SIDE_ENDINGS:
            side_of = place.name.removesuffix(ending)
            if side_of not in ("", place.name) and (
                side_of in manifests_of_files(place.parent)
                or _manifest(place.with_name(side_of) / MANIFEST) is not None
            ):
                return True
        manifests = [*manifests_of_folder(place.parent)]
        manifests += manifests_of_files(place.parent).get(place.name, ())
        if any(_is_no_input(each, place, sources) for each in manifests):
            return True
        may_open = len(paths) <= _FEW_FILES and not isinstance(place, RemotePath)
        return (may_open or "vocab" in place.name) and is_vocabulary(place)

    return sorted(filter(is_own, paths))


def _made_output(output: Path) -> Path | None:
    """Return an existing output; None if there is none, or another tool made it."""
    vouching = (f".{MANIFEST}", f"/{MANIFEST}", f"/{_MARKER}")
    places = (output.parent / f"{output.name}{ending}" for ending in vouching)
    return output.resolve() if any(place.exists() for place in places) else None


def _manifests_of_folder(folder: Path, top: Path) -> list[Mapping[str, Any]]:
    """Return the manifests of a folder, and of the folders around it up to `top`."""
    around = [each for each in folder.parents if each.is_relative_to(top) and each != Path()]
    manifests = (_manifest(each / MANIFEST) for each in (folder, *around))
    return [each for each in manifests if each is not None]


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
    # Extensions of browsers have a version of their manifests too.
    is_own = isinstance(manifest, dict) and {"manifest_version", "command"} <= manifest.keys()
    return manifest if is_own else None


def _is_no_input(
    manifest: Mapping[str, Any], place: Path, sources: Callable[[], Collection[str]]
) -> bool:
    """Return whether a file that a manifest vouches for is no input of another job.

    Tables that were made from other files than those the glob matches are.
    """
    if manifest.get("command") not in _MAKE_TABLES:
        return True
    read = [each["path"] for each in manifest.get("inputs", []) if "path" in each]
    return any(str(each) in sources() for path in read for each in _places(path, place))


def _places(path: str, place: Path) -> Iterator[Path]:
    """Yield candidates for a recorded input: from the working directory, or above an output."""
    for folder in (Path(), *place.absolute().parents):
        yield path_of(folder / path if "://" not in path else path).resolve()


def is_vocabulary(path: Path) -> bool:
    """Return whether a file begins as a WordPiece vocabulary does."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_VOCABULARY_HEAD_BYTES)
    except OSError:
        return False
    lines = head.removeprefix(codecs.BOM_UTF8).splitlines()
    # A text on BERT may have both in lines of their own, but not only words.
    return _VOCABULARY_LINES.issubset(lines) and not any(b" " in line.strip() for line in lines)

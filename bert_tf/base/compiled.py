"""Numba, whose cache of compiled functions notices every change of the code in them.

Import it in place of Numba's own: `from bert_tf.base.compiled import numba`.

Numba keeps functions with `cache=True` for later processes, and compiles one again when its source
file has changed. But compiled code contains the functions that it calls and the constants that it
uses, also those of other files. After an update that changes only these files, Numba would run the
old code, and results would be wrong without a word. So the stamp of a function of this project
covers more than its own file: all files of the project that are imported from there, directly or
through others, and the tables (`*.toml`) in their folders that they name. Imports are found in the
text of the files, which takes a process that uses all compiled functions some 60 milliseconds. An
edit of a file that many import, such as `errors.py`, has many functions compiled again.

A locator of `NUMBA_CACHE_LOCATOR_CLASSES` takes the place of ours: whoever sets it has to clear the
cache after an update.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba.core.caching import CacheImpl

__all__ = ["numba", "source_stamp"]

_ROOT = Path(__file__).absolute().parents[2]
_PACKAGES = ("bert_tf", "pipeline")
# `from a import b`, also over several lines in parentheses, and `import a`. The project has no
# relative imports, and one module per `import` (tests/test_architecture.py).
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<only>[\w.]+))",
    re.MULTILINE,
)
_TABLE = re.compile(r"\b\w+\.toml\b")


class _Source(NamedTuple):
    """A source file: hash of its content, and the files of the project that it uses."""

    sha256: bytes
    used: frozenset[Path]


@functools.cache
def source_stamp(path: Path) -> str:
    """Return a hash of a source file of this project, and of all files that its code depends on."""
    found = {path}
    unread = [path]
    while unread:
        new = _read(unread.pop()).used - found
        found |= new
        unread += new
    digest = hashlib.sha256()
    for file in sorted(found):
        digest.update(str(file.relative_to(_ROOT)).encode() + b"\0" + _read(file).sha256)
    return digest.hexdigest()


@functools.cache
def _read(path: Path) -> _Source:
    content = path.read_bytes()
    text = content.decode("utf-8")
    used: set[Path] = set()
    if path.suffix == ".py":
        used.update(_imported(text))
        used.update(path.parent / name for name in _TABLE.findall(text))
    return _Source(
        sha256=hashlib.sha256(content).digest(),
        used=frozenset(file for file in used if file.is_file()),
    )


def _imported(text: str) -> Iterator[Path]:
    """Yield the files that import statements may name; they need not exist."""
    for match in _IMPORT.finditer(text):
        module = match["module"] or match["only"]
        if module.partition(".")[0] not in _PACKAGES:
            continue
        place = _ROOT.joinpath(*module.split("."))
        yield place.with_suffix(".py")
        if match["names"] and place.is_dir():  # names may be modules of a package
            yield place / "__init__.py"
            for name in re.findall(r"\w+", match["names"]):
                yield place / f"{name}.py"


def _covering_imports(locator: type) -> type:
    """Return a locator of cached functions, as Numba chooses them, with our stamp for our files."""

    class Locator(locator):
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            path = Path(py_file).absolute()
            is_ours = any(path.is_relative_to(_ROOT / package) for package in _PACKAGES)
            if not is_ours or not path.is_file():
                return None
            chosen = super().from_function(py_func, py_file)
            if chosen is not None:
                chosen.source = path
            return chosen

        def get_source_stamp(self) -> str:
            return source_stamp(self.source)

    return Locator


# The first locator that can keep a function wins: ours for our functions, Numba's for all others.
# Numba has no public way to add a locator for some functions only (tests/test_dependencies.py).
CacheImpl._locator_classes = [
    *map(_covering_imports, CacheImpl._locator_classes),
    *CacheImpl._locator_classes,
]

"""No regular expression takes quadratic time: each is timed on inputs of growing lengths.

The patterns are those of all modules: compiled attributes, and constants that calls of `re` in
their source are given.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from behavior.timing import cpu_seconds, superlinear_growth

import bert_tf
import pipeline

OPTIONAL_PACKAGES = {"onnx", "onnxruntime", "openvino"}
_CALLS = ("compile", "sub", "subn", "split", "match", "fullmatch", "search", "findall", "finditer")
_ANCHORED = {"match", "fullmatch", "pattern"}
# A first look at each text: linear patterns take 8 times as long for the long one, quadratic ones
# 64 times. From 12 times on, longer texts decide.
_SHORT, _LONG = 1_000, 8_000
_SUSPICIOUS_GROWTH = 12
# Of texts that are short, or the project's own.
_NOT_OF_OTHERS = {
    "pipeline.beam.globs": "paths of the command line",
    "pipeline.beam.runner": "options of the command line",
    "pipeline.corpus.readers.html_process": "the first 4,096 bytes of a page",
    "pipeline.demo.corpus": "files of the package",
    "pipeline.outputs.job_spec": "config keys",
}
_ATOMS = (
    *" \t\n\r\"'<>&;=-+_.,:/\\|#*[](){}!@%0aA\u00e9\u0300\u4e00",
    *("a ", " a", "a\n", "\n ", "[[", "{{", "<a ", "<!--", "http://", "a@", "a.", "&#", "1,", "0-"),
    *(
        "''",
        "==",
        "\r\n",
        "</",
        "##",
        "a-",
        "<ref",
        "<meta ",
        "www.",
        "\n\n",
        "a:",
        '="',
        "e1",
        ",a=",
    ),
)


def modules() -> Iterator[str]:
    for package in (bert_tf, pipeline):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield module.name


def trees() -> dict[str, ast.Module]:
    files = (Path(importlib.util.find_spec(name).origin) for name in modules())
    return {str(file): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def uses(tree: ast.Module) -> dict[str, set[str]]:
    """Return the attributes that are taken of each name, as in `_NAME.sub(...)`."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def constants(tree: ast.Module) -> Iterator[tuple[str, re.Pattern]]:
    """Function and pattern of calls such as `re.sub(r"...", ...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            method = ast.unparse(node.func).removeprefix("re.")
            if method in _CALLS and isinstance(node.args[0], ast.Constant):
                yield method, re.compile(node.args[0].value)


def patterns() -> dict[tuple[re.Pattern, bool], str]:
    """Each pattern of the packages, whether it is only matched from the start, and its module."""
    parsed = trees()
    used = {file: uses(tree) for file, tree in parsed.items()}
    found = {}
    for name in modules():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:  # of an extra that is not installed
            assert error.name in OPTIONAL_PACKAGES
            continue
        for attribute, value in vars(module).items():
            if isinstance(value, re.Pattern):
                own = [module.__file__] if attribute.startswith("_") else list(used)
                methods = set().union(*(used[file].get(attribute, set()) for file in own))
                found[value, bool(methods) and methods <= _ANCHORED] = name
        for method, pattern in constants(parsed[module.__file__]):
            if method != "compile":
                found[pattern, method in _ANCHORED] = name
    return found


def search(pattern: re.Pattern, text: str | bytes, *, is_anchored: bool) -> None:
    if is_anchored:
        pattern.fullmatch(text)
    else:
        for _ in pattern.finditer(text):
            pass


def literals_of(pattern: re.Pattern) -> list[str]:
    """Return the literals of a pattern, of which long inputs are made, too."""
    text = (
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    )
    return [
        re.sub(r"\\(.)", r"\1", part)
        for part in re.findall(r"(?:\w|\\\W|[<&\"'=:@/ -]){1,12}", text)
    ]


def is_suspicious(
    run: Callable[[str | bytes], None], short: str | bytes, long: str | bytes
) -> bool:
    """Return whether the long text takes more than its share, in both of two attempts."""
    for _ in range(2):
        short_seconds = cpu_seconds(run, short, repeats=3)
        if cpu_seconds(run, long) <= _SUSPICIOUS_GROWTH * short_seconds:
            return False
    return True


def slow_input(pattern: re.Pattern, *, is_anchored: bool = False) -> str | None:
    """Return the repeated atom, after a begin, for which time grows faster than the text."""
    run = functools.partial(search, pattern, is_anchored=is_anchored)
    is_bytes = isinstance(pattern.pattern, bytes)
    literals = list(dict.fromkeys(literals_of(pattern)))[:8]
    for atom in dict.fromkeys((*_ATOMS, *literals)):
        for begin in ("", *literals[:2]):

            def repeated(length: int, atom: str = atom, begin: str = begin) -> str | bytes:
                text = begin + atom * (length // len(atom)) + "\0"
                return text.encode() if is_bytes else text

            if is_suspicious(run, repeated(_SHORT), repeated(_LONG)):
                growth = superlinear_growth(run, repeated, size=_LONG)
                if growth is not None:
                    return f"{begin!r} + {atom!r} * n: {growth}"
    return None


@pytest.mark.slow
def test_no_pattern_is_quadratic():
    found = patterns()
    assert len(found) > 100
    slow = {
        f"{name}: {pattern.pattern!r}": fault
        for (pattern, is_anchored), name in found.items()
        if name not in _NOT_OF_OTHERS and (fault := slow_input(pattern, is_anchored=is_anchored))
    }
    assert not slow, "\n".join(f"{where}: {fault}" for where, fault in slow.items())


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r"\s+$", r"<[^>]*>", r"a*b", r"\d+%", r"\w+\s*="])
def test_quadratic_patterns_are_found(pattern):
    assert slow_input(re.compile(pattern))

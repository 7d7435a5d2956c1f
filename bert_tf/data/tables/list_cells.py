"""Lists that are written in a cell's text: by JSON, by Python's `str`, by NumPy."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

_BRACKETS = {"[": "]", "(": ")", "{": "}"}
# array(['a', 'b'], dtype=object), set(), frozenset({'a'}), tensor([0, 1], device='cuda:0')
_CALL = re.compile(
    r"(?:\w+\.)*(?:array|set|frozenset|list|tuple|tensor|Index)\((.*?)(?:,\s*\w+=[^,()]*)*\)",
    re.DOTALL,
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = re.compile(rf"""(?:(?:np|numpy)\.\w+\()?({_QUOTED}|[^\s,'"()\[\]{{}}]+)\)?""", re.DOTALL)
_BETWEEN = re.compile(r"\s*,\s*|\s+")
_WORDS = {"True": True, "False": False, "None": None, "nan": None}


def list_in_text(text: str) -> list[Any] | None:
    """The items of a list, tuple, set or array; None where the text is something else.

    `["a", 1]`, `['a', "b's"]`, `('a',)`, `{'a', 'b'}`, `['a' 'b']` and `array(['a'], dtype=object)`
    are lists; `[a, b]` and `[a]|[b]` are not.
    """
    body = text.strip()
    if not body or body[-1] not in ")]}":
        return None
    if body[0] == "[":
        try:
            value = json.loads(body, parse_constant=str)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, list):
            return value
    if (call := _CALL.fullmatch(body)) is not None:
        body = call[1].strip() or "[]"
    if _BRACKETS.get(body[0]) != body[-1]:
        return None
    return _items(body[1:-1].strip(), needs_commas=body[0] != "[", may_be_single=body[0] != "(")


def value_in_text(text: str) -> Any:
    """The value that JSON or Python writes as a text, arrays of NumPy in it as lists; the text
    itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of escapes that are none
            tree = ast.parse(text.strip(), mode="eval")
            return ast.literal_eval(_WithoutArrays().visit(tree))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


class _WithoutArrays(ast.NodeTransformer):
    """`array(['a'], dtype=object)` to `['a']`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_array = isinstance(node.func, ast.Name) and node.func.id == "array" and node.args
        return self.visit(node.args[0]) if is_array else node


def _items(inner: str, *, needs_commas: bool, may_be_single: bool) -> list[Any] | None:
    items: list[Any] = []
    separators = set()
    place = 0
    while place < len(inner):
        item = _ITEM.match(inner, place)
        if item is None:
            return None
        value = _value(item[1])
        if value is _NO_VALUE:
            return None
        items.append(value)
        place = item.end()
        between = _BETWEEN.match(inner, place)
        if between is None:
            if place < len(inner):
                return None
            break
        separators.add("," in between[0])
        place = between.end()
    if len(separators) > 1 or (needs_commas and False in separators):
        return None
    return items if separators or may_be_single or not items else None


_NO_VALUE = object()


def _value(written: str) -> Any:
    if written[0] in "'\"":
        return value_in_text(written) if "\\" in written else written[1:-1]
    word = written.removeprefix("np.").removesuffix("_")  # np.True_
    if word in _WORDS:
        return _WORDS[word]
    for kind in (int, float):
        try:
            return kind(written)
        except ValueError:
            pass
    return _NO_VALUE

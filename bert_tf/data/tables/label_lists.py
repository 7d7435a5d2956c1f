"""Lists of labels in cells, as people, databases and annotation tools write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from types import UnionType
from typing import Any

from bert_tf.data.tables.cells import cell_text, list_in_text, value_in_text

# An item of PostgreSQL's arrays, and the comma or end after it:
# https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
# A bare item ends with its last character that is no blank, so blanks are read once.
_ARRAY_ITEM = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s{},"\\:](?:[^{},"\\:]*[^\s{},"\\:])?))\s*(,|\Z)'
)
_IN_ANGLES = re.compile(r"<([^<>]+)>")
_OF_ANGLES = re.compile(r"\s*(?:<[^<>]+>\s*)+")


def postgres_array(text: str) -> list[str] | None:
    """Parse `{a,"b c"}`, as PostgreSQL writes an array of one dimension.

    Returns:
        The items without quotes and escapes; None for other texts.
    """
    body = text.strip()
    if body[:1] != "{" or body[-1:] != "}":
        return None
    inner = body[1:-1].strip()
    items: list[str] = []
    place = 0
    after = ""
    while place < len(inner) or after == ",":
        match = _ARRAY_ITEM.match(inner, place)
        if match is None:
            return None
        quoted, bare, after = match.groups()
        if quoted is None:
            items.append(bare)
        else:
            items.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        place = match.end()
    return items


def angled_labels(text: str) -> list[str] | None:
    """Parse `<a><b>`, as StackOverflow writes tags; return None for other texts."""
    return _IN_ANGLES.findall(text) if _OF_ANGLES.fullmatch(text) else None


_BARE_LIST = re.compile(
    r"(?:\[|(?:WrappedArray|ArraySeq|ArrayBuffer|List|Set|Vector)\()([^\[\](){}\"]*)[\])]",
    re.DOTALL,
)


def bare_list(text: str) -> list[str] | None:
    """Parse `[a, b]` and `WrappedArray(a, b)`, as Spark, Hive and Java write lists; else None."""
    match = _BARE_LIST.fullmatch(text.strip())
    if match is None:
        return None
    items = [item.strip() for item in match[1].split(",")] if match[1].strip() else []
    return items if all(item and item[0] != "'" and "..." not in item for item in items) else None


def lists_of_databases(cells: Sequence[str]) -> list[list[str]] | None:
    """Parse cells that are all PostgreSQL arrays, labels in angle brackets, or lists of Spark.

    Args:
        cells: texts of a column. Empty ones are empty lists.

    Returns:
        A list per cell. None if any cell has another form, or if all are lists of Python or JSON,
            such as the set `{'a', 'b'}`.
    """
    filled = [cell for cell in cells if cell.strip()]
    if not filled:
        return None
    parsers = [postgres_array, angled_labels]
    if any("," in cell for cell in filled):
        parsers.append(bare_list)  # a column of only [a] and [b] may hold labels
    for parse in parsers:
        if all(parse(cell) is not None for cell in filled):
            if all(list_in_text(cell) is not None for cell in filled):
                return None
            return [parse(cell) or [] for cell in cells]
    return None


_CLOSING = {"[": "]", "(": ")", "{": "}", "<": ">"}
_SEVERAL = re.compile(r"[,;|]|>\s*<")


def is_label_list(label: str) -> bool:
    """Whether a label is the text of a list, a tuple, an object or several labels in brackets."""
    text = label.strip()
    if len(text) < 2 or _CLOSING.get(text[0]) != text[-1]:
        return False
    if isinstance(value_in_text(text), dict):
        return True
    return list_in_text(text) is not None or _SEVERAL.search(text) is not None


def single_labels(labels: Sequence[str]) -> list[str]:
    """Unwrap labels from lists of one item: `["billing"]` becomes `billing`.

    If other labels are no lists, only texts are unwrapped, because `[1]` may be a label there. A
    column with any list of another length stays as it is; detectors warn of these.
    """
    lists = [list_in_text(label) for label in labels]
    kinds: type | UnionType = str if None in lists else str | int | float
    for items in lists:
        if items is not None and (len(items) != 1 or not isinstance(items[0], kinds)):
            return list(labels)
    return [
        label if items is None else cell_text(items[0]).strip()
        for label, items in zip(labels, lists, strict=True)
    ]


# The value of a label, and the next label behind it, without blanks around both
_VALUE = re.compile(
    r"([+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?|true|false|yes|no)(?:(?:\s*[,;|]\s*|\s+)(.+))?",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(r"[^\d,;|][^,;|]*")
_WORDS_OF_TRUTH = frozenset(("true", "false", "yes", "no"))


def scored_labels(cells: Sequence[str]) -> list[dict[str, str]] | None:
    """Parse cells such as `sports=1, politics=0` and `sports:0.9`.

    Args:
        cells: texts of a column. Empty ones have no labels.

    Returns:
        For each cell the value of each label, in lower case. None if a cell has another form or a
        label twice; if no cell has several labels or a fraction, because `chapter:1` is a label; or
        if a number is not from 0 to 1, because `python:3.8` and `year:2019` are labels, too.
    """
    parsed: list[dict[str, str]] = []
    for cell in cells:
        if not cell.strip():
            parsed.append({})
            continue
        scores = _scores_of_object(cell)
        if scores is None:
            scores = _scores_of_pairs(cell)
        if scores is None:
            return None
        parsed.append(scores)
    values = {value for scores in parsed for value in scores.values()}
    if not all(value in _WORDS_OF_TRUTH or 0 <= float(value) <= 1 for value in values):
        return None
    has_fractions = any("." in value for value in values)
    has_several = any(len(scores) > 1 for scores in parsed)
    return parsed if has_fractions or has_several else None


def _scores_of_object(cell: str) -> dict[str, str] | None:
    """Parse an object of numbers, as JSON or Python writes it; return None for other texts."""
    value = value_in_text(cell) if cell.lstrip().startswith("{") else None
    if not isinstance(value, dict):
        return None
    if not all(isinstance(score, int | float) for score in value.values()):
        return None
    return {cell_text(label): cell_text(score) for label, score in value.items()}


def _scores_of_pairs(cell: str) -> dict[str, str] | None:
    """Parse `a=1, b=0`; return None for other texts, and if a label is there twice.

    The text is split at the signs. Each piece but the first then holds a value and, except for the
    last piece, the next label.
    """
    label, *pieces = re.split(r"[=:]", cell.strip().rstrip(",;|"))
    scores: dict[str, str] = {}
    for number, piece in enumerate(pieces, start=1):
        label = label.strip()
        match = _VALUE.fullmatch(piece.strip())
        is_last = number == len(pieces)
        if match is None or (match[2] is None) != is_last:
            return None
        if label in scores or not _LABEL.fullmatch(label):
            return None
        scores[label] = match[1].lower()
        label = match[2] or ""
    return scores or None


# Separators between the labels of a cell, the usual ones first
LABEL_SEPARATORS = ("|", ";", ",", "::", "/", "\n", "\t", "+", "&", "#", "，", "、", "；", "｜")


def joined_labels(label: str, others: Collection[str]) -> str | None:
    """Return the separator if a label is several of the others joined by it; else None."""
    for separator in (*LABEL_SEPARATORS, " "):
        parts = [part.strip() for part in label.split(separator)]
        if len(set(parts)) > 1 and all(part and part in others for part in parts):
            return separator
    return None


def labels_of_object(value: Any) -> list[str] | None:
    """Return the labels of an object in a cell; None if it is another object.

    Label Studio writes `{"choices": ["a", "b"]}`, spaCy `{"a": 1.0, "b": 0.0}`.
    """
    if not isinstance(value, dict) or not value:
        return None
    if set(value) == {"choices"}:
        choices = value["choices"]
        if isinstance(choices, str):
            return [choices]
        is_list = isinstance(choices, list) and all(isinstance(label, str) for label in choices)
        return choices if is_list else None
    for truth in value.values():
        if not isinstance(truth, int | float | None) or truth not in (0, 1, None):
            return None
    return [cell_text(label) for label, truth in value.items() if truth]

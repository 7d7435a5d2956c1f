"""Detectors for columns that are not read, though they change the meaning of the others.

The rows belong to several splits, texts have a second text beside them, or a column says which
pairs match although all are taken as matches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import shortened
from bert_tf.data.tables.judged import Details, Detector, ReadValues, Severity
from bert_tf.data.tables.value_forms import (
    are_classes_of_pairs,
    are_negations,
    are_scores,
    are_truths,
    is_split,
    second_text,
)

_NAMES_OF_JUDGMENTS = frozenset(  # names, and last words of names
    (
        *("score", "similarity", "label", "labels", "duplicate", "match", "relevance", "quality"),
        *("paraphrase", "target", "class", "y", "judgment", "rating", "grade", "relatedness"),
    )
)
_OPPOSITES = {"positive", "negative"}
_SHOWN_SPLITS = 5
_NOT_SCORES = re.compile(
    r"(.*[\W_])?(id|idx|index|nr|no|num|count|length|len|fold|year|price|cost|second|sec|minute|"
    r"hour|duration|time|start|end|weight|size|annotator|speaker|batch|part)s?",
    re.I,
)


def _unused_splits(values: ReadValues) -> Details | None:
    """Find a column of splits."""
    for name, cells in values.others.items():
        if is_split(name, cells):
            splits = sorted({str(cell).strip().lower() for cell in cells if cell not in (None, "")})
            kinds = ", ".join(splits[:_SHOWN_SPLITS])
            if len(splits) > _SHOWN_SPLITS:
                kinds += ", …"
            return {"column": repr(name), "kinds": kinds}
    return None


def _unused_second_text(values: ReadValues) -> Details | None:
    """Find a column whose name makes it the second text of a pair."""
    if not values.may_be_pair:
        return None
    first = next(iter(values.texts), "")
    second = second_text(first, values.others.keys())
    if second is None or not any(str(cell or "").strip() for cell in values.others[second]):
        return None
    return {"first": repr(first), "second": repr(second), "column": second}


def _is_judgment(name: str) -> bool:
    """Whether a name, or its last word, is usual for judgments of pairs."""
    last_word = re.split(r"[\W_]+", name.lower())[-1]
    return not _NAMES_OF_JUDGMENTS.isdisjoint((name.lower(), last_word))


def _say_no(name: str, cells: Sequence[Any]) -> bool:
    """Whether a column says yes and no, in its cells or by its name and a word with a negation."""
    return are_truths(cells) or are_negations(cells, of_any_word=_is_judgment(name))


def _judged_pairs(values: ReadValues) -> Details | None:
    """Find a column that says which pairs match, though all are taken as matches."""
    if not values.pairs_match:
        return None
    for name, cells in values.others.items():
        if _say_no(name, cells) and not is_split(name, cells):
            return {"quoted": repr(name), "column": name, **_text_columns(values)}
    return None


def _classified_pairs(values: ReadValues) -> Details | None:
    """Find the classes of natural language inference, though all pairs are taken as matches."""
    if not values.pairs_match:
        return None
    for name, cells in values.others.items():
        if are_classes_of_pairs(cells):
            return {"quoted": repr(name)}
    return None


def _scored_pairs(values: ReadValues) -> Details | None:
    """Find a column of scores, by its name or values, though all pairs are taken as matches."""
    if not values.pairs_match:
        return None
    for name, cells in values.others.items():
        if _say_no(name, cells) or are_classes_of_pairs(cells):
            continue  # judged or classified pairs, or a split
        kinds = {str(cell).strip().lower() for cell in cells if cell not in (None, "")}
        has_scores = are_scores(cells) and not _NOT_SCORES.fullmatch(name)
        if len(kinds) > 1 and (_is_judgment(name) or has_scores or kinds == _OPPOSITES):
            return {"quoted": repr(name), "example": shortened(sorted(kinds)[0])}
    return None


def _text_columns(values: ReadValues) -> dict[str, str]:
    first, second, *_ = values.used
    return {"first": first, "second": second}


COLUMN_DETECTORS: tuple[Detector[ReadValues], ...] = (
    Detector(
        name="unused splits",
        severity=Severity.WARNING,
        message="all rows are used, for each value of {column} ({kinds})",
        remedy="split the file",
        find=_unused_splits,
    ),
    Detector(
        name="unused second text",
        severity=Severity.WARNING,
        message="{first} is read without {second}",
        remedy="for pairs of texts give --text-pair-column {column}",
        find=_unused_second_text,
    ),
    Detector(
        name="judged pairs",
        severity=Severity.ERROR,
        error=UsageError,
        message="column {quoted} is not used: the loss takes every row as a match, also those "
        "where it says no",
        remedy="learn from it with --loss cosent --text-column {first} --text-pair-column "
        "{second} --label-column {column}, or remove the column and the rows that do not match",
        find=_judged_pairs,
    ),
    Detector(
        name="classified pairs",
        severity=Severity.ERROR,
        message="column {quoted} is not used: the loss takes every row as a match, also "
        "contradictions",
        remedy="keep the rows of entailment without the column, or fine-tune for the classes",
        find=_classified_pairs,
    ),
    Detector(
        name="scored pairs",
        severity=Severity.WARNING,
        message="column {quoted} ({example}, …) is not used: the loss takes every row as a match",
        remedy="--loss cosent learns from a column of numbers; of classes only keep the rows that "
        "match",
        find=_scored_pairs,
    ),
)

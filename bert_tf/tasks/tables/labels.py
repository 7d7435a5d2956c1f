"""The labels of a table: their order, how often each occurs, and which look wrong."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation

from bert_tf.base.wording import quantity
from bert_tf.data.text.casing import normalize

_WHOLE_NUMBER = re.compile(r"-?\d{1,4000}")  # Python refuses to read longer ones
_SHOWN_LABELS = 20
_SHOWN_FAULTS = 5
_LABEL_WIDTH = 40
# What pandas.read_csv takes for a missing value, and what people write for one.
_MISSING = frozenset(
    [
        *("#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "1.#ind", "1.#qnan", "<na>", "n/a"),
        *("na", "nan", "-nan", "none", "null", "nil", "missing", "-", "--", "?"),
    ]
)


class LabelRows:
    """How often each label occurs, and on which line first.

    Args:
        source: the file.
        labels: the label of each row.
        lines: the line of each row.
        noun: what has a label, where that is no row.
    """

    def __init__(
        self, source: str, labels: Sequence[str], lines: Sequence[int], *, noun: str = "row"
    ):
        self.source = source
        self.noun = noun
        self.counts = collections.Counter(labels)
        self.first: dict[str, int] = {}
        for label, line in zip(labels, lines, strict=True):
            self.first.setdefault(label, line)

    def named(self, label: str) -> str:
        """A label with its rows: `'sports ' (3 rows, first at line 17)`."""
        rows = self.counts[label]
        where = f"line {self.first[label]}" if rows == 1 else f"first at line {self.first[label]}"
        return f"{_quoted(label)} ({quantity(rows, self.noun)}, {where})"


def sorted_labels(labels: set[str]) -> tuple[str, ...]:
    """Labels in a stable order: by number if all are whole numbers, else as text."""
    if all(_WHOLE_NUMBER.fullmatch(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))


def rarest_labels(rows: Iterable[Sequence[str]]) -> list[str]:
    """The label of each row that is rarest in all rows, of equals the first; empty without one."""
    sets = list(rows)
    counts = collections.Counter(label for labels in sets for label in labels)
    return [min(labels, key=counts.__getitem__, default="") for labels in sets]


def label_table(
    labels: Sequence[str], training: LabelRows, evaluation: LabelRows | None
) -> Iterator[str]:
    """Lines with each label and its rows; of many labels the most frequent, then how many are left.

    Args:
        labels: in the order of the model.
        training: where the labels come from.
        evaluation: rows to measure on, if there are any.
    """
    shown = labels
    if len(labels) > _SHOWN_LABELS:
        shown = [label for label, _ in training.counts.most_common(_SHOWN_LABELS)]
    parts = [("training", training), ("evaluation", evaluation)]
    columns = [(name, rows.counts) for name, rows in parts if rows is not None]
    names = [shown_label(label) for label in shown]
    width = max(len(name) for name in ("label", *names))
    yield f"  {'label':{width}}" + "".join(f"  {name:>10}" for name, _ in columns)
    for label, name in zip(shown, names, strict=True):
        yield f"  {name:{width}}" + "".join(f"  {counts[label]:>10,}" for _, counts in columns)
    if len(labels) > len(shown):
        yield f"  and {quantity(len(labels) - len(shown), 'less frequent label')}"


def suspicious_labels(rows: LabelRows) -> Iterator[str]:
    """Lines on labels that are likely a mistake: twice the same, missing values, a single row."""
    groups: dict[object, list[str]] = {}
    for label in rows.counts:
        groups.setdefault(_essence(label), []).append(label)
    yield from _first(
        f"{rows.source}: {' and '.join(map(rows.named, same))} are different labels, though they "
        "differ only in spelling; make them one if they mean one"
        for same in groups.values()
        if len(same) > 1
    )
    yield from _first(
        f"{rows.source}: {rows.named(label)} is a label, though it looks like a missing value; "
        "take such rows out if it is one"
        for label in rows.counts
        if label.strip().casefold() in _MISSING
    )
    yield from _first(
        f"{rows.source}: {rows.named(label)} is the only {rows.noun} of its label, too few to "
        "learn it from"
        for label, count in rows.counts.items()
        if count == 1
    )


def unknown_labels(rows: LabelRows, known: Sequence[str]) -> Iterator[str]:
    """Lines on labels that a model does not know, with the known one that was likely meant.

    Args:
        rows: those with such labels.
        known: the model's labels.
    """
    meant = {_essence(label): f" (likely {_quoted(label)})" for label in known}
    yield from _first(
        f"{rows.source}: {rows.named(label)} is not a label of the model"
        f"{meant.get(_essence(label), '')}, which knows {shown_labels(known)}; such rows are "
        "rejected"
        for label, _ in rows.counts.most_common()
    )


def labels_on_card(labels: Sequence[str]) -> str:
    """A model card's list of labels, in Markdown."""
    listed = ", ".join(f"`{label}`" for label in labels[:_SHOWN_LABELS])
    more = len(labels) - _SHOWN_LABELS
    return f"labels: {listed}" + (f" and {more:,} more" if more > 0 else "")


def shown_labels(labels: Sequence[str]) -> str:
    """The first ten labels, and how many there are beyond."""
    listed = ", ".join(_quoted(label) for label in labels[:10])
    return listed if len(labels) <= 10 else f"{listed} and {len(labels) - 10:,} more"


def shown_label(label: str) -> str:
    """A label in a table or message: quoted where it could be taken for another one."""
    if label != " ".join(label.split()) or not label.isprintable():
        return _quoted(label)
    return label if len(label) <= _LABEL_WIDTH else label[: _LABEL_WIDTH - 1] + "…"


def _first(lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    yield from found[:_SHOWN_FAULTS]
    if len(found) > _SHOWN_FAULTS:
        yield f"  and {quantity(len(found) - _SHOWN_FAULTS, 'more label')} like these"


def _essence(label: str) -> object:
    """A label without what is spelling alone: case, spacing, form of characters and numbers."""
    folded = " ".join(normalize("NFKC", label).casefold().split())
    if "_" in folded:  # which Decimal would read over
        return folded
    try:
        number = Decimal(folded)
    except InvalidOperation:
        return folded
    return number if number.is_finite() else folded


def _quoted(label: str) -> str:
    text = repr(label)
    return text if len(text) <= _LABEL_WIDTH else text[: _LABEL_WIDTH - 1] + "…"

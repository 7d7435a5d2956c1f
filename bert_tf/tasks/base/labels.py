"""The labels of a table: their order, how often each occurs, and which look wrong."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.base.wording import quantity, shortened
from bert_tf.data.tables.label_lists import joined_labels
from bert_tf.data.tables.places import Places
from bert_tf.data.tables.value_forms import look_alikes, skeleton
from bert_tf.tasks.base.prediction_rows import TaskReport

if TYPE_CHECKING:
    from bert_tf.data.tables.file_rows import Table  # loads Numba

_WHOLE_NUMBER = re.compile(r"-?\d{1,4000}")  # Python refuses to read longer ones
_SEPARATORS = re.compile(r"[,;|/]")
_SHOWN_LABELS = 20  # rows of a table
_LISTED_LABELS = 10  # labels within a message
_SHOWN_FAULTS = 5  # messages of one kind
_LABEL_WIDTH = 40  # characters of a label in a message
# Missing values: those of pandas.read_csv, and others that people write.
_MISSING = frozenset(
    [
        *("#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "1.#ind", "1.#qnan", "<na>", "n/a"),
        *("na", "nan", "-nan", "none", "null", "nil", "missing", "-", "--", "?", "n.a.", r"\n"),
        *("unlabeled", "unlabelled", "unannotated", "not labeled", "todo", "tbd", "#ref!"),
        *("#value!", "#name?", "#div/0!", "#null!", "#num!", "undefined", "(blank)", "<null>"),
    ]
)


class LabelRows:
    """How often each label occurs in a file, and where first.

    Args:
        source: the file.
        labels: labels of all rows, end to end; a row may have several.
        lines: the line of each of them, counted from 1.
        noun: name in messages of the things that have a label.
        places: numbers and ids of the rows at these lines; None shows only lines.

    Attributes:
        counts: occurrences by label.
        first: line of the first occurrence by label.
    """

    def __init__(
        self,
        source: str,
        labels: Sequence[str],
        lines: Sequence[int],
        *,
        noun: str = "row",
        places: Places | None = None,
    ):
        self.source = source
        self.noun = noun
        self._places = places or Places()
        self.counts = collections.Counter(labels)
        self.first: dict[str, int] = {}
        for label, line in zip(labels, lines, strict=True):
            self.first.setdefault(label, line)

    def named(self, label: str) -> str:
        """Describe a label with its rows: `'sports ' (3 rows, first at line 17)`."""
        rows = self.counts[label]
        place = self._places.at(self.first[label])
        where = f"line {place}" if rows == 1 else f"first at line {place}"
        return f"{_quoted(label)} ({quantity(rows, self.noun)}, {where})"


def sorted_labels(labels: set[str]) -> tuple[str, ...]:
    """Order labels: by number if all are whole numbers, else as text.

    The order is that of the logits, so it must not depend on the order of the rows.
    """
    if all(_WHOLE_NUMBER.fullmatch(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))


def rarest_labels(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the label of each row that is rarest in all rows; empty for a row without one.

    Held-out rows are stratified by it: a class that only few rows have should be in both parts.
    """
    sets = list(rows)
    counts = collections.Counter(label for labels in sets for label in labels)
    return [min(labels, key=counts.__getitem__, default="") for labels in sets]


def label_table(labels: Sequence[str], rows: Mapping[str, LabelRows]) -> Iterator[str]:
    """Yield lines with each label and its rows; of many, those most frequent in the first file.

    Args:
        labels: in the order of the lines.
        rows: counts of each file by its heading, `training` and so on.
    """
    columns = [(name, counted.counts) for name, counted in rows.items()]
    named = labels
    if len(labels) > _SHOWN_LABELS:
        named = [label for label, _ in columns[0][1].most_common(_SHOWN_LABELS)]
    names = [shown_label(label) for label in named]
    width = max(len(name) for name in ("label", *names))
    yield f"  {'label':{width}}" + "".join(f"  {name:>10}" for name, _ in columns)
    for label, name in zip(named, names, strict=True):
        yield f"  {name:{width}}" + "".join(f"  {counts[label]:>10,}" for _, counts in columns)
    if len(labels) > len(named):
        yield f"  and {quantity(len(labels) - len(named), 'less frequent label')}"


def suspicious_labels(rows: LabelRows) -> Iterator[str]:
    """Yield lines on likely mistakes: a label in two spellings, missing values, a single row.

    A warning names at most five labels; a last line counts the rest.
    """
    groups: dict[object, list[str]] = {}
    for label in rows.counts:
        groups.setdefault(_essence(label), []).append(label)
    yield from _first(
        f"{rows.source}: {' and '.join(map(rows.named, same))} are different labels, though they "
        f"differ only in spelling{_look_alikes(same)}; use one spelling if they mean the same"
        for same in groups.values()
        if len(same) > 1
    )
    yield from _first(
        f"{rows.source}: {rows.named(label)} is a label, though it looks like a missing value; "
        "remove such rows if it is one"
        for label in rows.counts
        if label.strip().casefold() in _MISSING
        # GLUE's test files have -1 for every label; a scale with negative numbers lacks 0 to 2.
        or (label == "-1" and {"0", "1", "2"}.issubset(rows.counts))
    )
    yield from _first(
        f"{rows.source}: {rows.named(label)} is the only {rows.noun} of its label, too few to "
        "learn from"
        for label, count in rows.counts.items()
        if count == 1
    )


def labels_of_several(rows: LabelRows) -> Iterator[str]:
    """Yield lines on labels that join others, in a task whose rows have a single one."""
    separators = {label: joined_labels(label, rows.counts) for label in rows.counts}
    yield from _first(
        f"{rows.source}: {rows.named(label)} is several labels with {separator!r} between them, "
        "each of which is the only label of other rows; keep one, or fine-tune for any number of "
        "labels"
        for label, separator in separators.items()
        if separator is not None
    )


def unknown_labels(rows: LabelRows, known: Sequence[str]) -> Iterator[str]:
    """Yield lines on labels that a model does not know, with the known one likely meant.

    Args:
        rows: only the unknown labels and their rows.
        known: labels of the model.
    """
    meant = {_essence(label): f" (likely {_quoted(label)})" for label in known}
    for label in rows.counts:
        parts = [part.strip() for part in _SEPARATORS.split(label)]
        if len(parts) > 1 and set(known).issuperset(parts):
            meant[_essence(label)] = " (likely several, with another separator than in training)"
    yield from _first(
        f"{rows.source}: {rows.named(label)} is not a label of the model"
        f"{meant.get(_essence(label), '')}, which knows {shown_labels(known)}; such rows are "
        "rejected"
        for label, _ in rows.counts.most_common()
    )


def labels_on_card(labels: Sequence[str], title: str = "labels") -> str:
    """Return a fact of a model card that lists labels, at most the first 20."""
    listed = ", ".join(f"`{label}`" for label in labels[:_SHOWN_LABELS])
    more = len(labels) - _SHOWN_LABELS
    return f"{title}: {listed}" + (f" and {more:,} more" if more > 0 else "")


def shown_labels(labels: Sequence[str]) -> str:
    """List the first ten labels, and count the rest."""
    listed = ", ".join(_quoted(label) for label in labels[:_LISTED_LABELS])
    more = len(labels) - _LISTED_LABELS
    return f"{listed} and {more:,} more" if more > 0 else listed


def shown_label(label: str) -> str:
    """Show a label in a table or message, quoted where it could be taken for another."""
    if label != " ".join(label.split()) or not label.isprintable():
        return _quoted(label)
    return label if len(label) <= _LABEL_WIDTH else label[: _LABEL_WIDTH - 1] + "…"


def _first(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first five lines, and one that counts the rest."""
    shown_lines = list(lines)
    yield from shown_lines[:_SHOWN_FAULTS]
    if len(shown_lines) > _SHOWN_FAULTS:
        yield f"  and {quantity(len(shown_lines) - _SHOWN_FAULTS, 'more label')} like these"


def _look_alikes(labels: Sequence[str]) -> str:
    """Name the characters of labels that cannot be told from others by looking at them."""
    names: dict[str, None] = {}
    for label in labels:
        names |= dict.fromkeys(look_alikes(label))
    return f" (with {', '.join(names)})" if names else ""


def _essence(label: str) -> object:
    """Return a label without case, spacing, quotes, look-alike letters, and variants of numbers."""
    folded = skeleton(label)
    try:
        number = Decimal(folded.replace("_", "no number"))  # Decimal would read over it
    except InvalidOperation:
        return folded
    return number if number.is_finite() else folded


def _quoted(label: str) -> str:
    text = repr(label)
    return text if len(text) <= _LABEL_WIDTH else text[: _LABEL_WIDTH - 1] + "…"


_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_REASON = "label is not a finite number"
_MOST_LEVELS = 12  # high, medium, low; more words are no levels


def reject_other_labels(table: Table, column: str) -> Table:
    """Reject rows whose label is no finite float32.

    Raises:
        RowsRejected: no row is left.
    """
    advice = f"column {column!r} is read; choose another with --label-column"
    words = dict.fromkeys(cell.strip() for cell in table.columns[column])
    if words and not any(map(_is_number, words)):
        first = next(iter(words))
        if any(map(str.isdigit, first)):
            advice = f"write numbers such as 0.5, with a decimal point and nothing else ({advice})"
        elif 1 < len(words) <= _MOST_LEVELS:
            named = ", ".join(map(_quoted, [*words][:2]))
            advice = f"if these are levels, write each as a number in their order: {named}, …"
    return reject_cells(table, column, _is_number, reason=_REASON, shown=shortened, advice=advice)


def reject_cells(
    table: Table,
    column: str,
    is_usable: Callable[[str], bool],
    *,
    reason: str,
    shown: Callable[[str], str],
    advice: str,
) -> Table:
    """Reject rows whose cell of a column cannot be used.

    Args:
        table: usable rows so far.
        column: name of the column.
        is_usable: returns whether a cell can be used.
        reason: reason of the rejects.
        shown: returns the detail of a reject, from its cell.
        advice: advice for the message if no row is left.

    Raises:
        RowsRejected: no row is left.
    """
    cells = enumerate(table.columns[column])
    faults = {row: (reason, shown(cell)) for row, cell in cells if not is_usable(cell)}
    return table.rejecting(faults, advice=advice)


def _is_number(label: str) -> bool:
    if not _NUMBER.fullmatch(label):
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float32(float(label))))


LABEL_MEASURES = ("precision", "recall", "f1")
_SHOWN_WARNINGS = 5


class LabelMeasures:
    """Precision, recall and F1 of each label, as scikit-learn's `classification_report` has them.

    A quotient without rows is 0. Averages are over the labels that occur in gold or predictions; 0
    if none does.

    Args:
        right, predicted, support: int [labels], true positives, predictions and gold of each label.
        rows: number of rows of the file.
        labels: names, in the order of the arrays.
        counted: heading of the support.
    """

    def __init__(
        self,
        right: np.ndarray,
        predicted: np.ndarray,
        support: np.ndarray,
        *,
        rows: int,
        labels: Sequence[str],
        counted: str = "rows",
    ):
        self._labels = labels
        self._rows = rows
        self._counted = counted
        self._support = support
        self._predicted = predicted
        self._measures = {
            "precision": quotient(right, predicted),
            "recall": quotient(right, support),
            "f1": quotient(2 * right, support + predicted),
        }

    def macro_average(self) -> dict[str, float]:
        return self._average(self._support + self._predicted > 0)

    def details(self) -> dict[str, Any]:
        return {
            "labels": {
                label: {**self._measures_of(number), "support": int(self._support[number])}
                for number, label in enumerate(self._labels)
            },
            "macro_average": self.macro_average(),
            "weighted_average": self._average(self._support),
        }

    def report(self) -> TaskReport:
        return TaskReport(
            details=self.details(), lines=tuple(self.lines()), warnings=tuple(self.warnings())
        )

    def lines(self) -> Iterator[str]:
        """Yield a table for the console; none of too many labels."""
        if not 0 < len(self._labels) <= _SHOWN_LABELS:
            return
        names = [shown_label(label) for label in self._labels]
        width = max(len(name) for name in ("label", *names))
        head = "".join(f"  {name:>9}" for name in (*LABEL_MEASURES, self._counted))
        yield f"  {'label':{width}}{head}"
        for number, name in enumerate(names):
            cells = "".join(f"  {value:9.4f}" for value in self._measures_of(number).values())
            yield f"  {name:{width}}{cells}  {self._support[number]:>9,}"

    def warnings(self) -> Iterator[str]:
        never = np.flatnonzero((self._support > 0) & (self._predicted == 0))
        for number in never[:_SHOWN_WARNINGS].tolist():
            yield (
                f"label {shortened(self._labels[number])} is never predicted, though "
                f"{self._support[number]:,} of {quantity(self._rows, 'row')} have it"
            )
        if len(never) > _SHOWN_WARNINGS:
            yield f"{quantity(len(never) - _SHOWN_WARNINGS, 'more label')} are never predicted"

    def _average(self, weights: np.ndarray) -> dict[str, float]:
        total = max(1, int(weights.sum()))
        return {name: float(values @ weights / total) for name, values in self._measures.items()}

    def _measures_of(self, number: int) -> dict[str, float]:
        return {name: float(self._measures[name][number]) for name in LABEL_MEASURES}


def quotient(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide elementwise; 0 where `whole` is 0.

    Args:
        part, whole: numbers [n].

    Returns:
        float64 [n].
    """
    return np.divide(part, whole, out=np.zeros(np.shape(part)), where=whole > 0)


def pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Correlate float [rows] with float [rows]; 0 if either is constant."""
    if not np.ptp(first) or not np.ptp(second):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Correlate the ranks of float [rows]; equal numbers share the mean of their ranks."""
    from scipy.stats import rankdata  # only where numbers are measured

    return pearson(rankdata(first), rankdata(second))

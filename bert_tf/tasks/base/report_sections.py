"""Sections of an evaluation's page: tables, plots and examples without markup."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.labels import LABEL_MEASURES

MOST_EXAMPLES = 30
MOST_ROWS = 50
MOST_POINTS = 1000
_LENGTH_BINS = 5
_VALUE_BINS = 5
_LEAST_PROBABILITY = float(np.finfo(np.float32).tiny)

CellKind = Literal["text", "count", "fraction", "percent", "share", "number"]
# `both` is where a missed part and a wrong one overlap.
MarkKind = Literal["right", "missed", "wrong", "both"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableSection:
    """A table; None leaves a cell empty.

    Kinds of columns: a `text`; a `count`; a `fraction` of 1, also drawn as a bar, or shown as a
    `percent`; a `share` of 1, as percent, whose longest bar is the largest of the column; any other
    `number`.

    Attributes:
        columns: heading and kind of each.
        rows: a cell for each column.
    """

    title: str
    columns: tuple[tuple[str, CellKind], ...]
    rows: Sequence[Sequence[Any]]
    note: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatrixSection:
    """A table of counts, int [rows, columns], shaded by the fraction of their row."""

    title: str
    row_title: str
    column_title: str
    rows: Sequence[str]
    columns: Sequence[str]
    counts: np.ndarray
    note: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlotSection:
    """Points in a plane, float [points].

    Attributes:
        weights: areas of points are proportional to them; None if all are alike.
        intervals: float [points, 2], bounds of y, drawn as a line through each point.
        bounds: lowest and highest value of both axes; None takes those of the points.
        has_diagonal: whether a line shows where x equals y.
        table: the same as numbers.
    """

    title: str
    x_title: str
    y_title: str
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    intervals: np.ndarray | None = None
    bounds: tuple[float, float] | None = None
    has_diagonal: bool = False
    table: TableSection | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HistogramSection:
    """Counts of things by ranges of a number, as upright bars.

    Attributes:
        x_title: name of the number.
        noun: name of the counted things, in the plural: "records".
        names: names of the ranges, from left to right: "17 to 24", "3".
        ticks: texts under the middle of each bar, or, if there is one more, under their edges;
            "" for none.
        counts: int [ranges].
        parts: int [ranges], the part of each count that is `part_noun`, drawn in another color.
    """

    title: str
    x_title: str
    noun: str
    names: Sequence[str]
    ticks: Sequence[str]
    counts: np.ndarray
    parts: np.ndarray | None = None
    part_noun: str = ""
    note: str = ""


class Mark(NamedTuple):
    """A part of a text of an example.

    Attributes:
        start: its first character.
        end: the character after its last one.
        kind: decides its color.
        label: text to show behind it; "" for none.
    """

    start: int
    end: int
    kind: MarkKind
    label: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    """A row to look at.

    Attributes:
        line: line of its file where it starts, from 1; None if its facts name it, as in JSON.
        row, id: see `Place`.
        facts: label, prediction and the like, by their name.
        texts: its texts by input name.
        marks: parts of the texts, by their names; they may overlap.
    """

    line: int | None
    facts: Mapping[str, str]
    texts: Mapping[str, str]
    marks: Mapping[str, Sequence[Mark]] = dataclasses.field(default_factory=dict)
    row: int = 0
    id: str = ""


def example_at(
    place: Place | None,
    *,
    facts: Mapping[str, str],
    texts: Mapping[str, str],
    marks: Mapping[str, Sequence[Mark]] | None = None,
) -> Example:
    """Return a row to look at, named by its place, or by its facts if the place is None."""
    line, row, name = (None, 0, "") if place is None else place
    return Example(line=line, row=row, id=name, facts=facts, texts=texts, marks=marks or {})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesSection:
    """Rows to look at; `legend` explains the kinds of their marks."""

    title: str
    examples: Sequence[Example]
    note: str = ""
    legend: Mapping[MarkKind, str] = dataclasses.field(default_factory=dict)


Section = TableSection | MatrixSection | PlotSection | HistogramSection | ExamplesSection


def length_bins(lengths: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Divide rows into up to five groups of about the same size by length.

    Args:
        lengths: int [rows].

    Returns:
        The group of each row, int64 [rows], and the lengths of each group, "12 to 40".
    """
    last = np.arange(1, _LENGTH_BINS) * len(lengths) // _LENGTH_BINS - 1  # of each group but one
    edges = np.unique(np.sort(lengths)[np.maximum(last, 0)])
    # A value that is an edge belongs to the group below; groups without rows are closed up.
    _, groups = np.unique(np.searchsorted(edges, lengths, side="left"), return_inverse=True)
    names = []
    for group in range(groups.max() + 1):
        inside = lengths[groups == group]
        least = int(inside.min())
        most = int(inside.max())
        names.append(f"{least:,}" if least == most else f"{least:,} to {most:,}")
    return groups, names


def value_bins(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Divide numbers into five ranges of the same width.

    Args:
        values: float [rows].

    Returns:
        The range of each row, int64 [rows], and the bounds of each range, "1 to 2".
    """
    edges = np.linspace(values.min(), values.max(), _VALUE_BINS + 1)
    groups = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, _VALUE_BINS - 1)
    return groups, [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]


def characters_of(texts: Mapping[str, Sequence[Any]]) -> np.ndarray:
    """Count the characters of each row's texts, lists included, int64 [rows]."""
    columns = [
        [len(cell) if isinstance(cell, str) else sum(map(len, cell)) for cell in column]
        for column in texts.values()
    ]
    return np.array(columns, np.int64).sum(axis=0)


def table_by_group(
    title: str,
    group_title: str,
    groups: np.ndarray,
    names: Sequence[str],
    measures: Mapping[str, tuple[CellKind, np.ndarray]],
    *,
    note: str = "",
) -> TableSection:
    """Tabulate the mean of each measure over the rows of each group.

    Args:
        title, group_title, note: texts of the table.
        groups: int [rows], the group of each row.
        names: names of the groups; groups without rows are left out.
        measures: kind and values [rows] by heading.
    """
    counts = np.bincount(groups, minlength=len(names))
    means = [
        np.bincount(groups, weights=values, minlength=len(names)) / np.maximum(counts, 1)
        for _, values in measures.values()
    ]
    return TableSection(
        title=title,
        columns=(
            (group_title, "text"),
            ("rows", "count"),
            *((name, kind) for name, (kind, _) in measures.items()),
        ),
        rows=[
            [name, int(counts[group]), *(float(mean[group]) for mean in means)]
            for group, name in enumerate(names)
            if counts[group]
        ],
        note=note,
    )


def table_by_length(
    texts: Mapping[str, Sequence[Any]],
    measures: Mapping[str, tuple[CellKind, np.ndarray]],
    *,
    title: str = "By length",
    group_title: str = "characters",
) -> TableSection:
    """Tabulate the mean of each measure over rows of similar length, see `length_bins`.

    Args:
        texts: texts of the rows by input name.
        measures: kind and values [rows] by heading.
        title, group_title: texts of the table.
    """
    return table_by_group(title, group_title, *length_bins(characters_of(texts)), measures)


def negative_logs(probabilities: Any) -> np.ndarray:
    """Compute -log p, float64, finite where p is 0."""
    return -np.log(np.maximum(np.asarray(probabilities, np.float64), _LEAST_PROBABILITY))


def worst_rows(
    losses: np.ndarray,
    is_wrong: np.ndarray,
    places: Sequence[Place | None],
    texts: Mapping[str, Sequence[Any]],
    facts: Callable[[int], Mapping[str, str]],
    *,
    note: str,
    title: str = "Most wrong rows",
    marks: Callable[[int], Mapping[str, Sequence[Mark]]] = lambda row: {},
    legend: Mapping[MarkKind, str] | None = None,
) -> ExamplesSection:
    """Show the rows with the highest losses among those that are wrong.

    Args:
        losses: float [rows].
        is_wrong: bool [rows].
        places: place of each row in its file; None for a row that its facts name.
        texts: texts of the rows by input name.
        facts: label, prediction and the like of a row, from its number.
        title, note: texts of the section.
        marks: parts of the texts of a row, from its number.
        legend: explanation of each kind of mark.
    """
    return ExamplesSection(
        title=title,
        examples=[
            example_at(
                places[row],
                facts=facts(row),
                texts=shown_texts(texts, row),
                marks=marks(row),
            )
            for row in worst_first(np.where(is_wrong, losses, -np.inf)).tolist()
            if is_wrong[row]
        ],
        note=note,
        legend=legend or {},
    )


def worst_first(losses: np.ndarray, most: int = MOST_EXAMPLES) -> np.ndarray:
    """Return the rows with the highest losses, int64 [up to `most`], stable."""
    return np.argsort(-losses, kind="stable")[:most]


def shown_texts(texts: Mapping[str, Sequence[Any]], row: int) -> dict[str, str]:
    """Return the texts of a row; a list becomes a text with a line for each."""
    shown = {}
    for name, column in texts.items():
        cell = column[row]
        if not isinstance(cell, str):
            cell = "\n".join(f"{number}: {text}" for number, text in enumerate(cell))
        shown[name] = cell
    return shown


def spread_points(number: int) -> tuple[np.ndarray, str]:
    """Choose the rows to draw as points: all, or up to 1,000 evenly spread ones.

    Returns:
        Indices of rows, int64, and a sentence for the note with their number; "" for all.
    """
    drawn = np.unique(np.linspace(0, number - 1, min(number, MOST_POINTS)).astype(np.int64))
    tally = f"{len(drawn):,} of {number:,} rows. " if len(drawn) < number else ""
    return drawn, tally


def label_section(
    details: Mapping[str, Any],
    *,
    counted: str = "rows",
    more: Mapping[str, tuple[CellKind, Sequence[Any]]] | None = None,
) -> TableSection:
    """Tabulate precision, recall, F1 and rows of each label, of many the most frequent ones.

    Args:
        details: result of `LabelMeasures.details`, or another mapping with its `labels`.
        counted: heading of the rows.
        more: further columns by heading, kind and a cell for each label.
    """
    added = more or {}
    names = list(details["labels"])
    measured = list(details["labels"].values())
    order = sorted(range(len(names)), key=lambda number: -measured[number]["support"])
    rows = sorted(order[:MOST_ROWS])
    left = len(names) - len(rows)
    return TableSection(
        title="Labels",
        columns=(
            ("label", "text"),
            (counted, "count"),
            *((name, "fraction") for name in LABEL_MEASURES),
            *((name, kind) for name, (kind, _) in added.items()),
        ),
        rows=[
            [
                names[number],
                measured[number]["support"],
                *(measured[number][name] for name in LABEL_MEASURES),
                *(cells[number] for _, cells in added.values()),
            ]
            for number in rows
        ],
        note=f"The most frequent ones; {left:,} more are in metrics.json." if left else "",
    )

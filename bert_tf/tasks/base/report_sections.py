"""What the page of an evaluation shows of a task: tables, plots and examples without markup."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

MOST_EXAMPLES = 30
MOST_ROWS = 50
MOST_POINTS = 1000
_LENGTH_BINS = 5

CellKind = Literal["text", "count", "fraction", "percent", "number"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableSection:
    """A table.

    Attributes:
        title: heading.
        columns: name and kind of each: a `text`; a `count`; a `fraction` of 1, drawn as a bar as
            well, or one that is shown as a `percent`; any other `number`.
        rows: their cells; None leaves a cell empty.
        note: what a reader has to know, in a sentence; may be "".
    """

    title: str
    columns: tuple[tuple[str, CellKind], ...]
    rows: Sequence[Sequence[Any]]
    note: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatrixSection:
    """A table of counts, shaded by the fraction of their row.

    Attributes:
        title: heading.
        row_title, column_title: what rows and columns represent.
        rows, columns: their names.
        counts: int [rows, columns].
        note: as of `TableSection`.
    """

    title: str
    row_title: str
    column_title: str
    rows: Sequence[str]
    columns: Sequence[str]
    counts: np.ndarray
    note: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlotSection:
    """Points in a plane.

    Attributes:
        title: heading.
        x_title, y_title: names of the axes.
        x, y: float [points].
        weights: float [points], what the areas of the points are proportional to; None for equal
            ones.
        bounds: of both axes; None takes those of the points.
        has_diagonal: whether a line shows where x equals y.
        table: the same as numbers.
        note: as of `TableSection`.
    """

    title: str
    x_title: str
    y_title: str
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    bounds: tuple[float, float] | None = None
    has_diagonal: bool = False
    table: TableSection | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    """A row to look at.

    Attributes:
        line: where it starts in the file, counted from 1.
        facts: label, prediction and the like, by name, ready to be shown.
        texts: of the row, by input name.
    """

    line: int
    facts: Mapping[str, str]
    texts: Mapping[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesSection:
    """Rows to look at.

    Attributes:
        title: heading.
        examples: the rows.
        note: as of `TableSection`.
    """

    title: str
    examples: Sequence[Example]
    note: str = ""


Section = TableSection | MatrixSection | PlotSection | ExamplesSection


def length_bins(lengths: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Divides rows into up to five groups of about the same size by a length.

    Args:
        lengths: int [rows], at least one.

    Returns:
        The group of each row, int64 [rows]; the lengths of each group as text, "12 to 40".
    """
    last = np.arange(1, _LENGTH_BINS) * len(lengths) // _LENGTH_BINS - 1  # of each group but one
    edges = np.unique(np.sort(lengths)[np.maximum(last, 0)])
    # A value that is an edge belongs to the group below; groups without rows are closed up.
    _, groups = np.unique(np.searchsorted(edges, lengths, side="left"), return_inverse=True)
    names = []
    for group in range(groups.max() + 1):
        inside = lengths[groups == group]
        least, most = int(inside.min()), int(inside.max())
        names.append(f"{least:,}" if least == most else f"{least:,} to {most:,}")
    return groups, names


def characters_of(texts: Mapping[str, Sequence[Any]]) -> np.ndarray:
    """Characters of each row's texts together, lists of texts included, int64 [rows]."""
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
    """A table with the mean of each measure over the rows of each group.

    Args:
        title: heading.
        group_title: what the groups are.
        groups: int [rows], the group of each row.
        names: of the groups.
        measures: by name, their kind and a value per row.
        note: as of `TableSection`.
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


def worst_first(losses: np.ndarray, most: int = MOST_EXAMPLES) -> np.ndarray:
    """The rows with the highest losses, int64 [up to `most`], in file order among equals."""
    return np.argsort(-losses, kind="stable")[:most]


def shown_texts(texts: Mapping[str, Sequence[Any]], row: int) -> dict[str, str]:
    """The texts of a row; a list of texts becomes one text with a line for each."""
    cells = {name: column[row] for name, column in texts.items()}
    return {
        name: cell if isinstance(cell, str) else "\n".join(f"{i}: {t}" for i, t in enumerate(cell))
        for name, cell in cells.items()
    }


def spread_points(number: int) -> np.ndarray:
    """Which of so many points are drawn, int64: all, or up to 1,000 evenly spread ones."""
    return np.unique(np.linspace(0, number - 1, min(number, MOST_POINTS)).astype(np.int64))

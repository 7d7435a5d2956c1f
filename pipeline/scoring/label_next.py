"""The rows to label next: those of which the model is least certain, and that differ.

Of all rows, the least certain are candidates, ten for each row to choose. The measure of certainty
is the margin, the difference between the two highest probabilities (Scheffer et al. 2001). The
lowest margins may all belong to near copies of one hard text. So the rows are chosen one by one, by
their gain over the rows chosen before, in the model's own vectors: uncertain rows, close to many
other uncertain rows, but not to a chosen one (Wei et al. 2015). Rows that are only far from all
others (k-center) were worse than the lowest margins on TREC, see benchmarks/label_next.py.

Memory is bounded by the candidates, not by the rows: every block keeps its own least certain rows
beside its part, and the join reads one block after the other. Margins are compared in steps of
0.0001, and ties are broken by the place in the files, so that the choice does not depend on the
number of processes.
"""

from __future__ import annotations

import dataclasses
import heapq
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.profile.texts import joined_texts

CANDIDATES_PER_ROW = 10
LEAST_CANDIDATES = 1000  # vectors of so many short texts take seconds
MOST_CANDIDATES = 5000  # unless more rows are chosen; comparing them takes up to a minute
_LEADING = 32  # rows whose gains are computed again together
_ROWS_AT_ONCE = 512  # whose similarities to all candidates are in memory
_GAIN_DIGITS = 3  # to which gains are rounded
_SMALLEST_NORM = 1e-12  # of a vector, to divide by
STEPS = 10_000  # of a margin from 0 to 1


class MarkedRow(NamedTuple):
    """A row that is read again when all are scored; rows are sorted by the first five values.

    Attributes:
        key: certainty of the model, in steps; 0 for all if the first rows are marked.
        table, block: numbers of both.
        begin, end: bytes of the row in the part of its block.
        place: of the row in its file.
        texts: its text, or list of texts, by input.
    """

    key: int
    table: int
    block: int
    begin: int
    end: int
    place: Place
    texts: dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarkedRows:
    """The choice of rows that are read again: the least certain ones, or the first.

    Attributes:
        most: number of rows.
        output: the model's output with probabilities; None for the first rows.
        are_exclusive: whether a row has one label; otherwise each label is a yes or no.
        flag: that needs the rows; "" if models of earlier releases may lack the output.
    """

    most: int
    output: str | None = None
    are_exclusive: bool = True
    flag: str = ""

    @classmethod
    def least_certain_of(
        cls, declared: ServedTaskDeclaration, most: int, *, flag: str, model: str
    ) -> MarkedRows:
        """Mark the least certain rows; UsageError if the task has no probabilities of labels."""
        probabilities = declared.probabilities
        if probabilities is None:
            raise UsageError(
                f"{flag} does not apply to {model}: {declared.name} predicts {declared.summary}, "
                "which has no probabilities to tell certain rows by"
            )
        are_exclusive = any(field.kind == "probability" for field in declared.predictions)
        return cls(most=most, output=probabilities.output, are_exclusive=are_exclusive, flag=flag)

    def write(
        self,
        part: Path,
        lines: Sequence[str],
        rows: Sequence[int],
        predicted: Mapping[str, np.ndarray],
        texts: Mapping[str, Sequence[Any]],
        places: Sequence[Place],
    ) -> None:
        """Write the marked rows of a block beside its part.

        Args:
            part: file of the block's scored rows.
            lines: its lines, which may hold line ends in quotes.
            rows: number of each line's row in the block.
            predicted: the model's outputs, [rows of the block, …] by name.
            texts: texts of the block's rows by input.
            places: of the row of each line in its file.
        """
        if self.output is not None and self.output not in predicted:
            if self.flag:
                raise InputError(
                    f"the exported model has no output {self.output}, which {self.flag} needs: an "
                    "earlier release exported it; export it again"
                )
            write_text_atomically(_beside(part), "[]")
            return
        keys = self._keys(predicted, len(next(iter(texts.values()))))[list(rows)]
        offsets = offsets_of(np.array([len(line.encode()) + 1 for line in lines], np.int64))
        chosen = np.argsort(keys, kind="stable")[: self.most].tolist()
        marks = [
            [
                int(keys[line]),
                int(offsets[line]),
                int(offsets[line + 1]),
                places[line],
                {name: column[rows[line]] for name, column in texts.items()},
            ]
            for line in chosen
        ]
        write_text_atomically(_beside(part), json.dumps(marks))

    def read(self, parts: Iterable[tuple[int, int, Path]]) -> list[MarkedRow]:
        """Return the marked rows of all blocks, given by their tables, numbers and parts."""
        best: list[MarkedRow] = []
        for table, block, part in parts:
            marks = json.loads(_beside(part).read_text(encoding="utf-8"))
            of_part = [
                MarkedRow(key, table, block, begin, end, Place(*place), texts)
                for key, begin, end, place, texts in marks
            ]
            best = heapq.nsmallest(self.most, [*best, *of_part], key=lambda row: row[:5])
        return best

    def _keys(self, predicted: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
        """Return the certainty of the model for each row, in steps, int64 [rows]."""
        if self.output is None:
            return np.zeros(rows, np.int64)
        probabilities = np.asarray(predicted[self.output], np.float64)
        if self.are_exclusive:
            second, first = np.sort(probabilities, axis=1)[:, -2:].T
            margins = first - second
        else:  # the margin of the least certain label
            margins = np.abs(2 * probabilities - 1).min(axis=1)
        return np.round(margins * STEPS).astype(np.int64)


def candidates_for(number: int) -> int:
    """Return the number of least certain rows that are compared, to choose `number` of them."""
    return max(LEAST_CANDIDATES, min(CANDIDATES_PER_ROW * number, MOST_CANDIDATES), 2 * number)


def choose_marked(
    marked: Sequence[MarkedRow], number: int, vectors: Callable[[list[str]], np.ndarray]
) -> list[MarkedRow]:
    """Choose rows to label of the least certain ones; see `choose_rows`.

    Args:
        marked: the least certain rows.
        number: of rows to choose.
        vectors: computes float32 [texts, dimensions] from texts.
    """
    if len(marked) <= number:
        return list(marked)
    texts = [joined_texts({name: [text] for name, text in row.texts.items()})[0] for row in marked]
    margins = np.array([row.key for row in marked]) / STEPS
    return [marked[place] for place in choose_rows(margins, vectors(texts), number)]


def read_line(part: Path, row: MarkedRow) -> str:
    """Return the line of a marked row, without its line end."""
    with part.open("rb") as stream:
        stream.seek(row.begin)
        return stream.read(row.end - row.begin).decode().removesuffix("\n")


def rewrite_parts(
    rows: Iterable[tuple[MarkedRow, bytes]],
    part_of: Callable[[int, int], Path],
    *,
    only: bool,
    all_parts: Iterable[tuple[int, int]] = (),
) -> None:
    """Replace lines of finished parts, which then no longer count as finished.

    Args:
        rows: the new line of each row, with its line end.
        part_of: returns the part of a table's block.
        only: whether all other lines are left out.
        all_parts: tables and blocks of all parts, needed if other lines are left out.
    """
    by_part: dict[tuple[int, int], list[tuple[int, int, bytes]]] = defaultdict(list)
    if only:
        by_part.update({numbers: [] for numbers in all_parts})
    for row, line in rows:
        by_part[row.table, row.block].append((row.begin, row.end, line))
    for (table, block), chosen in by_part.items():
        part = part_of(table, block)
        content = part.read_bytes()
        pieces = []
        last = 0
        for begin, end, line in sorted(chosen):
            if not only:
                pieces.append(content[last:begin])
            pieces.append(line)
            last = end
        if not only:
            pieces.append(content[last:])
        part.write_bytes(b"".join(pieces))


def choose_rows(margins: np.ndarray, vectors: np.ndarray, number: int) -> list[int]:
    """Choose rows that together stand for all uncertain rows, in the order of their choice.

    The worth of a choice is a sum over all rows: the uncertainty of a row times its similarity to
    the nearest chosen row (facility location). Rows are chosen greedily by their gain, the amount
    that a row adds to this sum; the result reaches 63% of the best possible sum (Nemhauser et al.
    1978).

    The gain of a row never rises when other rows are chosen (Minoux 1978). So an old gain is an
    upper bound, and only the rows with the highest old gains are computed again: the best of these
    is chosen once its new gain is higher than the old gains of all others.

    Args:
        margins: float [rows], 0 for the least certain to 1.
        vectors: float [rows, dimensions].
        number: of rows to choose, at most all.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = (vectors / np.maximum(lengths, _SMALLEST_NORM)).astype(np.float32)
    uncertainty = 1.0 - margins
    nearest = np.zeros(len(margins))  # similarity of each row to the nearest chosen one

    # Takes 100 MB for the usual number of candidates. For more, parts are computed when needed.
    similarities = directions @ directions.T if len(margins) <= MOST_CANDIDATES else None

    def similarities_of(rows: np.ndarray) -> np.ndarray:
        return directions[rows] @ directions.T if similarities is None else similarities[rows]

    def gains(rows: np.ndarray) -> np.ndarray:
        nearer = np.maximum(similarities_of(rows) - nearest, 0.0)
        # Rounded, so that another processor's arithmetic does not change the choice.
        return np.round(nearer @ uncertainty, _GAIN_DIGITS)

    # A heap of (negative gain, row), whose gains may be old.
    waiting: list[tuple[float, int]] = []
    for first in range(0, len(margins), _ROWS_AT_ONCE):
        rows = np.arange(first, min(first + _ROWS_AT_ONCE, len(margins)))
        waiting += zip((-gains(rows)).tolist(), rows.tolist(), strict=True)
    heapq.heapify(waiting)
    chosen: list[int] = []
    while len(chosen) < number:
        leading = [heapq.heappop(waiting)[1] for _ in range(min(_LEADING, len(waiting)))]
        new_gains = gains(np.array(leading))
        best, *others = sorted(zip((-new_gains).tolist(), leading, strict=True))
        for entry in others:
            heapq.heappush(waiting, entry)
        if waiting and waiting[0] < best:  # another row may have a higher gain
            heapq.heappush(waiting, best)
            continue
        _, row = best
        chosen.append(row)
        nearest = np.maximum(nearest, directions @ directions[row])
    return chosen


def _beside(part: Path) -> Path:
    """Return the file of the marked rows of a part."""
    return part.with_suffix(".next.json")

"""Which rows to label next: those that the model is least certain of, and unlike each other.

Of all rows, the least certain are candidates, ten for each row to choose. The margin, the
difference between the two highest probabilities, says how certain (Scheffer et al. 2001). Alone it
would choose near copies of one hard text. So the rows are chosen one by one for what they add to
those chosen before, in the model's own vectors: uncertain rows, in regions where many are, that no
chosen row is near to (Wei et al. 2015). Rows that are merely far from all others (k-center) were
worse than only the margin on TREC, see benchmarks/label_next.py.

Memory is bounded by the candidates, not by the rows: every block keeps its own least certain rows
beside its part, and the join reads one block after the other. Margins are compared in steps of
0.0001, and equal ones by their place in the files, so that the choice does not depend on how many
processes computed them.
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

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.profile.texts import joined_texts

CANDIDATES_PER_ROW = 10
LEAST_CANDIDATES = 1000  # vectors of so many short texts take seconds
MOST_CANDIDATES = 5000  # unless more rows are chosen; comparing them takes up to a minute
_LEADING = 32  # rows whose worth is computed again together
_ROWS_AT_ONCE = 512  # whose similarities to all candidates are in memory
STEPS = 10_000  # of a margin from 0 to 1


class MarkedRow(NamedTuple):
    """A row that is looked at again when all are scored; the order is that of these values.

    Attributes:
        key: how certain the model is, in steps; 0 for all if the first rows are marked.
        table, block: numbers of both.
        begin, end: bytes of the row in the part of its block.
        place: where it is in its file.
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
    """Which rows are looked at again: the least certain ones, or the first.

    Attributes:
        most: how many.
        output: the model's output with probabilities; None for the first rows.
        are_exclusive: whether a row has one label, or a yes or no for each.
        flag: that needs the rows; "" if models of earlier releases may have none.
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
        field = declared.probabilities
        if field is None:
            raise UsageError(
                f"{flag} does not apply to {model}: {declared.name} predicts {declared.summary}, "
                "which has no probabilities to tell certain rows by"
            )
        are_exclusive = any(each.kind == "probability" for each in declared.predictions)
        return cls(most=most, output=field.output, are_exclusive=are_exclusive, flag=flag)

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
            places: where the row of each line is in its file.
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
        ends = np.cumsum([len(line.encode()) + 1 for line in lines])
        chosen = np.argsort(keys, kind="stable")[: self.most].tolist()
        marks = [
            [
                int(keys[at]),
                int(ends[at - 1]) if at else 0,
                int(ends[at]),
                places[at],
                {name: column[rows[at]] for name, column in texts.items()},
            ]
            for at in chosen
        ]
        write_text_atomically(_beside(part), json.dumps(marks))

    def read(self, parts: Iterable[tuple[int, int, Path]]) -> list[MarkedRow]:
        """Return the marked rows of all blocks, given by their tables, numbers and parts."""
        best: list[MarkedRow] = []
        for table, block, part in parts:
            marks = json.loads(_beside(part).read_text(encoding="utf-8"))
            here = [
                MarkedRow(key, table, block, begin, end, Place(*place), texts)
                for key, begin, end, place, texts in marks
            ]
            best = heapq.nsmallest(self.most, [*best, *here], key=lambda row: row[:5])
        return best

    def _keys(self, predicted: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
        """Return how certain the model is of each row, in steps, int64 [rows]."""
        if self.output is None:
            return np.zeros(rows, np.int64)
        probabilities = np.asarray(predicted[self.output], np.float64)
        if self.are_exclusive:
            second, first = np.sort(probabilities, axis=1)[:, -2:].T
            margins = first - second
        else:  # of the label that it is least certain of
            margins = np.abs(2 * probabilities - 1).min(axis=1)
        return np.round(margins * STEPS).astype(np.int64)


def candidates_for(number: int) -> int:
    """Return how many of the least certain rows are compared with each other."""
    return max(LEAST_CANDIDATES, min(CANDIDATES_PER_ROW * number, MOST_CANDIDATES), 2 * number)


def choose_marked(
    marked: Sequence[MarkedRow], number: int, vectors: Callable[[list[str]], np.ndarray]
) -> list[MarkedRow]:
    """Choose rows to label of the least certain ones; see `choose_rows`.

    Args:
        marked: the least certain rows.
        number: how many to choose.
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
        all_parts: tables and blocks of all parts, needed if only some lines stay.
    """
    by_part: dict[tuple[int, int], list[tuple[int, int, bytes]]] = defaultdict(list)
    for where in all_parts if only else ():
        by_part[where] = []
    for row, line in rows:
        by_part[row.table, row.block].append((row.begin, row.end, line))
    for (table, block), chosen in by_part.items():
        part = part_of(table, block)
        content = part.read_bytes()
        pieces, last = [], 0
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

    Each row counts with its uncertainty times its similarity to the nearest chosen row, and every
    choice adds as much as possible to the sum (facility location; greedy choices reach 63% of the
    best possible sum, Nemhauser et al. 1978). What a row adds only falls as others are chosen, so
    it is computed again only for rows that lead by what they would have added before (Minoux 1978).

    Args:
        margins: float [rows], 0 for the least certain to 1.
        vectors: float [rows, dimensions].
        number: how many to choose, at most as many as there are.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    uncertainty = 1.0 - margins
    nearest = np.zeros(len(margins))  # similarity of each row to the nearest chosen one

    # 100 MB for as many candidates as there usually are; of more, products are made when needed.
    known = directions @ directions.T if len(margins) <= MOST_CANDIDATES else None

    def added(rows: np.ndarray) -> np.ndarray:
        similarity = directions[rows] @ directions.T if known is None else known[rows]
        # Rounded to steps, so that another processor's arithmetic does not change the choice.
        return np.round(np.maximum(similarity - nearest, 0.0) @ uncertainty, 3)

    starts = range(0, len(margins), _ROWS_AT_ONCE)
    parts = [np.arange(first, min(first + _ROWS_AT_ONCE, len(margins))) for first in starts]
    waiting = [
        (-worth, row)
        for rows in parts
        for worth, row in zip(added(rows).tolist(), rows.tolist(), strict=True)
    ]
    heapq.heapify(waiting)
    chosen: list[int] = []
    while len(chosen) < number:
        leading = [heapq.heappop(waiting)[1] for _ in range(min(_LEADING, len(waiting)))]
        again = zip((-added(np.array(leading))).tolist(), leading, strict=True)
        best, *others = sorted(again)
        for each in others:
            heapq.heappush(waiting, each)
        if waiting and waiting[0] < best:
            heapq.heappush(waiting, best)
            continue
        _, row = best
        chosen.append(row)
        nearest = np.maximum(nearest, directions @ directions[row])
    return chosen


def _beside(part: Path) -> Path:
    return part.with_suffix(".next.json")

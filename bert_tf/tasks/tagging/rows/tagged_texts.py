"""The usable rows of a file with tagged words or entities, as flat arrays."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Self

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.data.tables.cells import text_fault_of_words
from bert_tf.data.tables.dialect import PLAIN, TableBudget, TableDialect
from bert_tf.data.tables.rejects import Reject, keeping_rejects, nothing_usable
from bert_tf.tasks.tagging.rows.tagged_rows import read_tagged_rows
from bert_tf.tasks.tagging.rows.tagged_text import TagColumns, TaggedText


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedTexts:
    """The usable rows of a file, their marks end to end; see `TaggedText`.

    Attributes:
        source: the file.
        texts, lines: of each row.
        has_words: what the marks of all rows are.
        offsets: int64 [rows + 1], where the marks of a row begin and end.
        starts, ends: int64 [marks], characters in the row's text.
        tags: of each mark.
        mark_lines: the line of each mark.
        rejects: rows that cannot be used.
    """

    source: str
    texts: list[str]
    lines: list[int]
    has_words: bool
    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    tags: list[str]
    mark_lines: list[int]
    rejects: list[Reject]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def owners(self) -> np.ndarray:
        """The row of each mark, int64 [marks]."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def rejecting(self, faults: dict[int, Reject]) -> Self:
        """The texts without some rows, which become rejects.

        Args:
            faults: what is wrong with a row, by its index.

        Raises:
            RowsRejected: no row is left.
        """
        if len(faults) == len(self):
            raise nothing_usable(self.source, [*self.rejects, *faults.values()])
        kept = np.ones(len(self), bool)
        kept[list(faults)] = False
        return self._selected(kept, [*self.rejects, *faults.values()])

    def split(self, held_out: np.ndarray) -> tuple[Self, Self]:
        """The other rows with all rejects, and those that are held out, bool [rows]."""
        return self._selected(~held_out, self.rejects), self._selected(held_out, [])

    def _selected(self, chosen: np.ndarray, rejects: list[Reject]) -> Self:
        rows = np.flatnonzero(chosen).tolist()
        of_chosen = chosen[self.owners]
        marks = np.flatnonzero(of_chosen).tolist()
        return dataclasses.replace(
            self,
            texts=[self.texts[row] for row in rows],
            lines=[self.lines[row] for row in rows],
            offsets=offsets_of(np.diff(self.offsets)[chosen]),
            starts=self.starts[of_chosen],
            ends=self.ends[of_chosen],
            tags=[self.tags[mark] for mark in marks],
            mark_lines=[self.mark_lines[mark] for mark in marks],
            rejects=rejects,
        )


def read_tagged_texts(
    path: str | Path,
    columns: TagColumns,
    *,
    dialect: TableDialect = PLAIN,
    max_rows: int = 0,
    console: Console | None = None,
) -> TaggedTexts:
    """Reads a file whole, its tags as they are written.

    Args:
        path: CoNLL by the ending of its name, otherwise a table.
        columns: where the file has what.
        dialect: encoding of the file, and whether a table has a header.
        max_rows: read only the first rows, rejected ones included (0: all).
        console: where lines for the user go.

    Raises:
        InputError: the file is damaged, no row can be used, or they take more memory than
            `dialect.max_table_megabytes`.
        UsageError: the file is missing or lacks a column.
    """
    budget = TableBudget(path, dialect.max_table_megabytes)
    usable: list[TaggedText] = []
    rejects: list[Reject] = []
    with keeping_rejects(rejects):
        for count, row in enumerate(read_tagged_rows(path, columns, dialect, console), start=1):
            fault = row.fault or text_fault_of_words(row.text)
            if fault:
                rejects.append(Reject(str(path), row.line, *fault))
            else:
                usable.append(row)
            budget.add(1 + len(row.tags), (row.text,))
            if count == max_rows:
                break
    if not usable:
        raise nothing_usable(path, rejects)
    return TaggedTexts(
        source=str(path),
        texts=[row.text for row in usable],
        lines=[row.line for row in usable],
        has_words=usable[0].has_words,
        offsets=offsets_of(np.array([len(row.tags) for row in usable], np.int64)),
        starts=np.array([start for row in usable for start in row.starts], np.int64),
        ends=np.array([end for row in usable for end in row.ends], np.int64),
        tags=[tag for row in usable for tag in row.tags],
        mark_lines=[line for row in usable for line in row.lines],
        rejects=rejects,
    )

"""What is cut off texts that are too long for a sequence: counted, logged, kept with the model."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.wording import quantity
from bert_tf.serving.signatures import MANY_CUT
from bert_tf.tasks.base.task import TaskData


@dataclasses.dataclass(frozen=True, kw_only=True)
class Truncation:
    """Rows of a file that lose tokens.

    Attributes:
        rows, rows_cut: of the file; those that lose tokens.
        tokens, tokens_lost: of all sequences if nothing were cut; those that are.
    """

    rows: int
    rows_cut: int
    tokens: int
    tokens_lost: int

    @classmethod
    def of(cls, data: TaskData) -> Self:
        """Counts those of what was encoded."""
        lost = data.rows.lost_tokens
        if lost is None:
            lost = np.zeros(len(data.rows), np.int64)
        owners = np.arange(len(lost)) if data.owners is None else data.owners
        return cls(
            rows=len(data.source),
            rows_cut=len(np.unique(owners[lost > 0])),
            tokens=len(data.rows.ids) + int(lost.sum()),
            tokens_lost=int(lost.sum()),
        )

    def __str__(self) -> str:
        return (
            f"{self.rows_cut:,} of {quantity(self.rows, 'row')} ({self.rows_cut / self.rows:.1%}) "
            f"are too long and lose {self.tokens_lost:,} of {quantity(self.tokens, 'token')} "
            f"({self.tokens_lost / self.tokens:.1%})"
        )

    def log(self, console: Console, source: str, remedy: str) -> None:
        """Shows what is lost, if anything is; a warning if many rows are cut.

        Args:
            console: where the line goes.
            source: the file.
            remedy: what a user can do.
        """
        if self.rows_cut > MANY_CUT * self.rows:
            console.warn(f"{source}: {self}; {remedy}")
        elif self.rows_cut:
            console.info(f"{source}: {self}")

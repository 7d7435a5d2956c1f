"""Ids that several rows have, found in bounded memory while a table is read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bert_tf.base.wording import quantity, shortened
from bert_tf.data.tables.places import SHOWN_CHARACTERS

_MOST_WATCHED = 10_000_000  # ids, each of which takes 8 bytes


class RepeatedIds:
    """Finds ids that several rows have, in bounded memory.

    Hashes of 64 bits stand for ids: among ten million, two different ones have the same hash with a
    probability of 0.0003%. Ids after those are not compared. Sorted runs of hashes are merged once
    they are as long as the next one, so that each hash is moved a logarithmic number of times.

    Attributes:
        count: rows whose id an earlier row has.
        first: the id of the first of them; "" for none.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self._runs: list[np.ndarray] = []

    def add(self, ids: Iterable[str]) -> None:
        """Compare more ids with each other and with those before; empty texts are skipped."""
        names = [name for name in ids if name]
        if not names or sum(map(len, self._runs)) >= _MOST_WATCHED:
            return
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        values, firsts = np.unique(hashes, return_index=True)
        is_known = np.zeros(len(values), np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, values), len(run) - 1)
            is_known |= run[places] == values
        is_repeat = np.ones(len(names), np.bool_)
        is_repeat[firsts[~is_known]] = False
        if is_repeat.any():
            self.count += int(np.count_nonzero(is_repeat))
            self.first = self.first or names[int(np.argmax(is_repeat))]
        new = values[~is_known]
        while self._runs and len(self._runs[-1]) <= len(new):
            new = np.sort(np.concatenate([self._runs.pop(), new]))
        if len(new):
            self._runs.append(new)


def repeated_ids_warning(source: str, column: str, first: str, count: int) -> str:
    """Return the warning that several rows have the same id.

    Args:
        source: the file.
        column: name of the id column.
        first: the first id that an earlier row has.
        count: rows with the id of an earlier row.
    """
    verb = "has" if count == 1 else "have"
    return (
        f"{source}: {quantity(count, 'row')} {verb} the id of an earlier row in column {column!r}, "
        f"the first {shortened(first, SHOWN_CHARACTERS)}; lines tell such rows apart"
    )

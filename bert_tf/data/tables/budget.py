"""Bounds the memory of tables read whole: ten megabytes of .gz may hold eight gigabytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from bert_tf.base.errors import InputError

_ROW_BYTES = 100  # line number, places in lists; a reject takes about twice that


class TableBudget:
    """What the rows of one file may take in memory.

    Args:
        path: the file.
        megabytes: at most.
    """

    def __init__(self, path: str | Path, megabytes: float):
        self._path = path
        self._megabytes = megabytes
        self._left = megabytes * 1e6

    def add(self, rows: int, texts: Iterable[str]) -> None:
        """Counts rows that are kept, and their texts.

        Raises:
            InputError: together with those before they are more than allowed.
        """
        self._left -= rows * _ROW_BYTES + sum(map(sys.getsizeof, texts))
        if self._left < 0:
            raise InputError(
                f"{self._path}: its rows take more than {self._megabytes:g} MB of memory; give "
                "fewer rows, or raise max_table_megabytes"
            )

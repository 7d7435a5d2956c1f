"""Rows in pieces, for kernels to work on side by side where there are cores to spare."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bert_tf.base.processor import usable_cores

# Not by the number of cores: sums are those of pieces, so that every machine adds up in one order.
PIECE_SIZE = 2**18
# Batches are computed in two parts, and on two cores each has one of them.
_LEAST_CORES = 3

Item = TypeVar("Item")


def has_pool() -> bool:
    """Whether there are threads besides those of TensorFlow."""
    return _pool() is not None


def for_each(function: Callable[[Item], None], items: Iterable[Item]) -> None:
    """Calls a function, which holds no lock while it works, with every item."""
    items = list(items)
    pool = _pool()
    if pool is None or len(items) < 2:
        for item in items:
            function(item)
    else:
        for _ in pool.map(function, items):
            pass


@functools.cache
def _pool() -> ThreadPoolExecutor | None:
    cores = usable_cores()
    if cores < _LEAST_CORES:
        return None
    return ThreadPoolExecutor(cores, thread_name_prefix="kernels")

"""A thread pool that maps batches ahead of the consumer, results in order."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yields `function` of every item in order; one thread per core, up to two items ahead.

    Pays off where `function` spends its time outside Python (TensorFlow, compiled loops).
    """
    threads = len(os.sched_getaffinity(0))
    pending: collections.deque[Future[Result]] = collections.deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

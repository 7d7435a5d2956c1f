"""A thread pool that maps items ahead of the consumer, results in order."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from bert_tf.base.processor import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ahead(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    threads: int | None = None,
    depth: int | None = None,
) -> Iterator[Result]:
    """Yields `function` of every item in order.

    Pays off where `function` or the consumer spends its time outside Python (TensorFlow, compiled
    loops).

    Args:
        function: called in a thread.
        items: what it is called with.
        threads: how many items are mapped at once; None for one per core.
        depth: how many items are mapped, or wait for the consumer, beside the one that it has;
            None for two per thread.
    """
    threads = usable_cores() if threads is None else threads
    depth = 2 * threads if depth is None else depth
    pending: collections.deque[Future[Result]] = collections.deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > depth:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

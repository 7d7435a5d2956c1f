"""Time without seconds: its growth with an input, and waiting for a condition.

How long work takes depends on the processor and on what else runs there, so no test compares a
duration with a number of seconds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

# Of an input twice as long, linear work takes 2 times as long and quadratic work 4 times.
_MOST_GROWTH = 2.8
_DOUBLINGS = 3
_SUSPICIOUS_GROWTH = 16  # over all of them, linear work takes 8 times as long
# The clock counts nanoseconds, but an interrupt or a page fault can add a millisecond.
_MEASURABLE_SECONDS = 0.01
_ATTEMPTS = 3
# Ends a test that would hang; on a busy core, what is waited for takes seconds.
_MOST_WAITING_SECONDS = 600.0


def cpu_seconds(run: Callable[[Any], object], given: Any, *, repeats: int = 1) -> float:
    """Return the least CPU time that this process took for `run(given)`."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run(given)
        times.append(time.process_time() - began)
    return min(times)


def superlinear_growth(
    run: Callable[[Any], object],
    make_input: Callable[[int], Any],
    *,
    size: int,
    smallest: int | None = None,
) -> str | None:
    """Return how the CPU time of `run` outgrows its input, or None if it does not.

    Sizes double until `size` is reached and takes measurable time, so a fast machine gets longer
    inputs, at most 16 times as long: an input that large and still quick needs no bound. Each size
    that takes measurable time is compared with the three sizes before it: quadratic work takes
    four times as long at every doubling. It is found at the first such size, so work that would
    take days for an input of `size` fails within seconds.

    CPU time leaves out waiting for a core, but other processes still stretch it, never the
    opposite. So each time is the best of several, and excessive growth only counts if every
    attempt shows it at each doubling. A step, as where memory no longer fits in a cache, shows at
    one doubling only.

    Args:
        run: the work. It must not keep results of earlier calls.
        make_input: returns an input of about so many units; its own time does not count.
        size: large enough for the quadratic part of the time to exceed the rest many times over.
        smallest: of the sizes, by default a 64th of `size`; at most an eighth.

    Returns:
        The sizes and their times in words, for `assert superlinear_growth(...) is None`.
    """
    current = smallest or max(size // 64, 1)
    times: list[float] = []
    cpu_seconds(run, make_input(current))  # compiles kernels, loads modules, fills caches
    while True:
        times.append(cpu_seconds(run, make_input(current)))
        is_measurable = times[-1] >= _MEASURABLE_SECONDS
        is_comparable = is_measurable and len(times) > _DOUBLINGS
        if is_comparable and times[-1] > _SUSPICIOUS_GROWTH * times[-1 - _DOUBLINGS]:
            sizes = [current >> shift for shift in range(_DOUBLINGS, -1, -1)]
            if all(_outgrows(run, make_input, sizes) for _ in range(_ATTEMPTS)):
                return f"inputs of {sizes} units took {[round(t, 4) for t in times[-4:]]} s"
        if current >= 16 * size or (is_comparable and current >= size):
            return None
        current *= 2


def _outgrows(
    run: Callable[[Any], object], make_input: Callable[[int], Any], sizes: list[int]
) -> bool:
    """Return whether the time grows by more than `_MOST_GROWTH` from each size to the next."""
    *shorter_sizes, longest = sizes
    times = [cpu_seconds(run, make_input(size), repeats=3) for size in shorter_sizes]
    times.append(cpu_seconds(run, make_input(longest)))  # once, as it takes most of the time
    return all(longer > _MOST_GROWTH * shorter for shorter, longer in itertools.pairwise(times))


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds; fail only after minutes, which end a test that would hang.

    Args:
        condition: is called every few milliseconds.
        what: should have happened, for the message.
    """
    limit = time.monotonic() + _MOST_WAITING_SECONDS
    while not condition():
        assert time.monotonic() < limit, f"never happened: {what}"
        time.sleep(0.005)

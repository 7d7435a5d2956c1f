"""Cores and instruction sets of the processor, and threads that map items ahead."""

from __future__ import annotations

import collections
import dataclasses
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

_VECTOR_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}
# Values of oneDNN's ONEDNN_MAX_CPU_ISA that exclude bfloat16. TensorFlow only asks the processor,
# and its products abort the process if oneDNN is limited to one of these.
_WITHOUT_BFLOAT16 = {"SSE41", "AVX", "AVX2", "AVX2_VNNI"}


# Times of a core in /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. The later
# columns are contained in the first two.
_TIMES = 8
_IDLE = 3
_IOWAIT = 4


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0))


@dataclasses.dataclass(frozen=True, kw_only=True)
class CoreTimes:
    """Times so far, to measure how busy other processes keep the usable cores.

    Attributes:
        now: seconds of a clock.
        busy: seconds that these cores have worked or were taken away; None if unknown.
        own: seconds that this process has used.
    """

    now: float
    busy: float | None
    own: float

    @classmethod
    def read(cls) -> Self:
        """Return the present times."""
        return cls(now=time.monotonic(), busy=_busy_seconds(), own=time.process_time())

    def taken_by_others(self) -> float:
        """Return the fraction of the cores that other processes have used since; 0 if unknown."""
        later = CoreTimes.read()
        if self.busy is None or later.busy is None or later.now <= self.now:
            return 0.0
        others = (later.busy - self.busy) - (later.own - self.own)
        return min(1.0, max(0.0, others / (later.now - self.now) / usable_cores()))


def _busy_seconds() -> float | None:
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = 0
    readable = 0
    for line in lines:
        name, _, rest = line.partition(" ")
        if name not in usable:
            continue
        readable += 1
        times = [int(time) for time in rest.split()[:_TIMES]]
        ticks += sum(times) - times[_IDLE] - times[_IOWAIT]
    if readable < len(usable):
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def processor_flags() -> set[str]:
    """Return the instruction sets of the processor, as Linux names them; empty elsewhere."""
    return set(_first_value("flags").split())


def vector_extensions() -> list[str]:
    """Return the instruction sets that decide the speed of models, the oldest first."""
    flags = processor_flags()
    return [flag for flag in _VECTOR_FLAGS if flag in flags]


def has_bfloat16() -> bool:
    """Return whether bfloat16 is faster than float32 here, and oneDNN may use it."""
    return not is_bfloat16_excluded() and not _BFLOAT16_FLAGS.isdisjoint(processor_flags())


def is_bfloat16_excluded() -> bool:
    """Return whether ONEDNN_MAX_CPU_ISA excludes bfloat16, which makes TensorFlow crash."""
    return os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in _WITHOUT_BFLOAT16


def describe_processor() -> str:
    """Return model name, number of cores and instruction sets, for reports."""
    model = _first_value("model name") or platform.processor() or platform.machine()
    extensions = vector_extensions()
    return f"{model}, {os.cpu_count()} cores, {' '.join(extensions) or 'no vector flags known'}"


def _first_value(key: str) -> str:
    """Return the first value of a key in /proc/cpuinfo; "" if there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return next((value.strip() for name, value in pairs if name.strip() == key), "")


Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ahead(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    threads: int | None = None,
    depth: int | None = None,
) -> Iterator[Result]:
    """Yield `function` of every item, in order, computed ahead in threads.

    Useful if `function` or the consumer spends its time outside of Python (TensorFlow, compiled
    loops).

    Args:
        function: called in a thread.
        items: its arguments.
        threads: items that are mapped at once; None for one per core.
        depth: items that are mapped or waiting for the consumer; None for two per thread.
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

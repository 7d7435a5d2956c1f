"""Cores and instruction sets of the processor, and a pool of threads that maps items ahead."""

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
# The values of oneDNN's ONEDNN_MAX_CPU_ISA without bfloat16. TensorFlow asks the processor only,
# and its products abort the process where oneDNN is limited to one of these.
_WITHOUT_BFLOAT16 = {"SSE41", "AVX", "AVX2", "AVX2_VNNI"}


def usable_cores() -> int:
    return len(os.sched_getaffinity(0))


@dataclasses.dataclass(frozen=True, kw_only=True)
class CoreTimes:
    """Times so far, to measure how busy other processes keep the usable cores."""

    now: float  # seconds of a clock
    busy: float | None  # seconds that these cores worked or were taken away; None if unknown
    own: float  # seconds of it for this process

    @classmethod
    def read(cls) -> Self:
        return cls(now=time.monotonic(), busy=_busy_seconds(), own=time.process_time())

    def taken_by_others(self) -> float:
        """Fraction of the cores used by other processes since; 0 where not known."""
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
    times = [line.split()[1:9] for line in lines if line.split(" ", 1)[0] in usable]
    if len(times) < len(usable):
        return None
    ticks = sum(sum(map(int, each)) - int(each[3]) - int(each[4]) for each in times)
    return ticks / os.sysconf("SC_CLK_TCK")


def processor_flags() -> set[str]:
    """Instruction sets of the processor as Linux names them; empty elsewhere."""
    return set(_first_value("flags").split())


def vector_extensions() -> list[str]:
    """Instruction sets that decide the speed of models, in order of age."""
    flags = processor_flags()
    return [flag for flag in _VECTOR_FLAGS if flag in flags]


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 faster than float32, and oneDNN may."""
    return not is_bfloat16_excluded() and not _BFLOAT16_FLAGS.isdisjoint(processor_flags())


def is_bfloat16_excluded() -> bool:
    return os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in _WITHOUT_BFLOAT16


def describe_processor() -> str:
    model = _first_value("model name") or platform.processor() or platform.machine()
    found = vector_extensions()
    return f"{model}, {os.cpu_count()} cores, {' '.join(found) or 'no vector flags known'}"


def _first_value(key: str) -> str:
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
    """Yield `function` of every item in order, computed ahead in `threads`, one per core if None.

    `depth` items are mapped or waiting for the consumer; None for two per thread.
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

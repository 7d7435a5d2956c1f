"""What processor this is, and which of its instructions decide the speed."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_VECTOR_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def processor_flags() -> set[str]:
    """Instruction sets of this machine's processor as Linux names them; empty elsewhere."""
    return set(_first_value("flags").split())


def vector_extensions() -> list[str]:
    """Those instruction sets of the processor that decide the speed of models, in order of age."""
    flags = processor_flags()
    return [flag for flag in _VECTOR_FLAGS if flag in flags]


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 faster than float32."""
    return not _BFLOAT16_FLAGS.isdisjoint(processor_flags())


def describe_processor() -> str:
    """Model name, number of cores and vector extensions, for reports and benchmarks."""
    model = _first_value("model name") or platform.processor() or platform.machine()
    found = vector_extensions()
    return f"{model}, {os.cpu_count()} cores, {' '.join(found) or 'no vector flags known'}"


def _first_value(key: str) -> str:
    """The first value of a key of /proc/cpuinfo, empty where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return next((value.strip() for name, value in pairs if name.strip() == key), "")

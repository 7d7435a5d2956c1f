"""Memory of this machine, its GPUs and control groups; imports no TensorFlow."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bert_tf.base.gpus import nvidia_gpus

_CGROUPS = Path("/sys/fs/cgroup")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes: `total` for all processes, and those free or used by this one already."""

    total: int
    available: int

    def __str__(self) -> str:
        return f"{self.available / 1e9:.1f} of {self.total / 1e9:.1f} GB"


def machine_memory(process: Path = Path("/proc/self"), cgroups: Path = _CGROUPS) -> Memory:
    """Memory of the machine, or of the control group (container) that has least."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    free = total  # where the system does not say, as macOS
    with suppress(OSError, KeyError, ValueError):
        free = 1024 * _numbers(process.parent / "meminfo")["MemAvailable:"]
    own = 0
    with suppress(OSError, KeyError, ValueError):
        own = 1024 * _numbers(process / "status")["VmRSS:"]
    free += own
    found = Memory(total=total, available=min(free, total))
    for group in _memory_groups(process, cgroups):
        with suppress(OSError, ValueError):  # `max`, the root, a group of another container
            limit, used = _limit_and_use(group)
            if limit < found.total:
                free = max(0, limit - used) + own
                found = Memory(total=limit, available=min(free, limit, found.available))
    return found


@contextmanager
def releasing_graphs() -> Iterator[None]:
    """Releases the graphs that are traced inside the block.

    TensorFlow registers gradients of `tf.custom_gradient` until the process ends, and each of them
    holds its graph: 50 MB a run, however small the model is.
    """
    before = {*_custom_gradients()}
    try:
        yield
    finally:
        for name in {*_custom_gradients()} - before:
            del _custom_gradients()[name]


def release_memory() -> None:
    """Returns what a job has freed to the system, for notebooks that go on."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)


def _custom_gradients() -> dict[str, Any]:
    framework = sys.modules.get("tensorflow.python.framework.ops")
    return {} if framework is None else framework.gradient_registry._registry


def memory_and_swap() -> int:
    """Bytes of memory and swap; a container's swap is not known."""
    total = machine_memory().total
    if total == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        with suppress(OSError, KeyError, ValueError):
            total += 1024 * _numbers(Path("/proc/meminfo"))["SwapTotal:"]
    return total


def peak_bytes() -> int:
    """Peak memory of this process; `getrusage` of Linux counts that of its parent, too."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * _numbers(Path("/proc/self/status"))["VmHWM:"]


def _memory_groups(process: Path, cgroups: Path) -> list[Path]:
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            mounted, inner = cgroups / controllers, Path(path.lstrip("/"))
            folders += [mounted / inner, *(mounted / parent for parent in inner.parents)]
    return folders


def _limit_and_use(group: Path) -> tuple[int, int]:
    """Bytes; file pages that have not been read for a while do not count as used."""
    is_second = (group / "memory.max").exists()
    names = ("max", "current") if is_second else ("limit_in_bytes", "usage_in_bytes")
    limit, used = (int((group / f"memory.{name}").read_text(encoding="ascii")) for name in names)
    with suppress(OSError, KeyError, ValueError):
        stat = _numbers(group / "memory.stat")
        used -= stat["inactive_file" if is_second else "total_inactive_file"]
    return limit, used


def _numbers(path: Path) -> dict[str, int]:
    words = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {found[0]: int(found[1]) for found in words if len(found) > 1 and found[1].isdigit()}


def memory_for_steps() -> Memory | None:
    """Memory of this machine, or of a GPU; None where it is not known, as on TPUs."""
    from bert_tf.training.arithmetic import has_accelerator  # loads TensorFlow

    if not has_accelerator():
        return machine_memory()
    sizes = [gpu.memory for gpu in nvidia_gpus() if gpu.memory is not None]
    return Memory(total=min(sizes), available=min(sizes)) if sizes else None


def is_out_of_memory(error: Exception) -> bool:
    """Whether TensorFlow lacked memory for a tensor; a full disk raises the same type."""
    import tensorflow as tf

    message = str(error)
    return isinstance(error, tf.errors.ResourceExhaustedError) and (
        "OOM when allocating" in message or "ut of memory" in message
    )

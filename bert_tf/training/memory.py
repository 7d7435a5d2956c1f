"""Memory of this machine, its GPUs and its control groups; does not import TensorFlow."""

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
from typing import Any, NamedTuple

from bert_tf.base.gpus import nvidia_gpus

_CGROUPS = Path("/sys/fs/cgroup")


class _CgroupNames(NamedTuple):
    """Names of the kernel's files for a control group, and of a number in `memory.stat`."""

    limit: str
    usage: str
    unread_pages: str


_CGROUP_1 = _CgroupNames("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_CGROUP_2 = _CgroupNames("memory.max", "memory.current", "inactive_file")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Memory:
    """Memory in bytes.

    Attributes:
        total: memory of all processes together.
        available: memory that is free, or can be freed, plus the memory of this process.
    """

    total: int
    available: int

    def __str__(self) -> str:
        return f"{self.available / 1e9:.1f} of {self.total / 1e9:.1f} GB"


def machine_memory(process: Path = Path("/proc/self"), cgroups: Path = _CGROUPS) -> Memory:
    """Return the memory of the machine, or of its most limited control group (container).

    Args:
        process: folder of this process in /proc; `meminfo` is beside it.
        cgroups: mount point of the control groups, version 1 or 2.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    free = total  # if the system does not say, like macOS
    with suppress(OSError, KeyError, ValueError):
        free = 1024 * _numbers(process.parent / "meminfo")["MemAvailable:"]
    own = 0  # memory of this process, which stays available to it
    with suppress(OSError, KeyError, ValueError):
        own = 1024 * _numbers(process / "status")["VmRSS:"]
    free += own
    memory = Memory(total=total, available=min(free, total))
    for group in _memory_groups(process, cgroups):
        # No limit ("max"), no such file (the root), or a group of another container.
        with suppress(OSError, ValueError):
            limit, used = _limit_and_use(group)
            if limit < memory.total:
                free = max(0, limit - used) + own
                memory = Memory(total=limit, available=min(free, limit, memory.available))
    return memory


@contextmanager
def releasing_graphs() -> Iterator[None]:
    """Release the graphs that are traced inside the block.

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
    """Return freed memory to the system, for notebooks that continue after a job."""
    gc.collect()
    with suppress(OSError, AttributeError):  # the C library is not glibc
        ctypes.CDLL(None).malloc_trim(0)


def _custom_gradients() -> dict[str, Any]:
    """Return TensorFlow's registry of gradients; {} if TensorFlow has not been imported."""
    framework = sys.modules.get("tensorflow.python.framework.ops")
    return {} if framework is None else framework.gradient_registry._registry


def memory_and_swap() -> int:
    """Return bytes of memory and swap; in a container without its swap, which is not known."""
    total = machine_memory().total
    if total == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        with suppress(OSError, KeyError, ValueError):
            total += 1024 * _numbers(Path("/proc/meminfo"))["SwapTotal:"]
    return total


def peak_bytes() -> int:
    """Return the peak memory of this process in bytes.

    On Linux, `getrusage` would include the peak of the parent process that it was forked from.
    """
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * _numbers(Path("/proc/self/status"))["VmHWM:"]


def _memory_groups(process: Path, cgroups: Path) -> list[Path]:
    """Return the folders of this process's control group and of all groups that contain it."""
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            mounted = cgroups / controllers
            inner = Path(path.lstrip("/"))
            folders += [mounted / inner, *(mounted / parent for parent in inner.parents)]
    return folders


def _limit_and_use(group: Path) -> tuple[int, int]:
    """Return limit and use in bytes; file pages not read for a while do not count as used."""
    names = _CGROUP_2 if (group / "memory.max").exists() else _CGROUP_1
    limit = int((group / names.limit).read_text(encoding="ascii"))
    used = int((group / names.usage).read_text(encoding="ascii"))
    with suppress(OSError, KeyError, ValueError):
        used -= _numbers(group / "memory.stat")[names.unread_pages]
    return limit, used


def _numbers(path: Path) -> dict[str, int]:
    """Read the number after the first word of each line, by the word; skip lines without one."""
    words = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {
        fields[0]: int(fields[1]) for fields in words if len(fields) > 1 and fields[1].isdigit()
    }


def memory_for_steps() -> Memory | None:
    """Return the memory that training steps can use: of a GPU, else of this machine.

    None if it is not known, as on TPUs. The GPU is the one with the least memory.
    """
    from bert_tf.training.arithmetic import has_accelerator  # loads TensorFlow

    if not has_accelerator():
        return machine_memory()
    sizes = [gpu.memory for gpu in nvidia_gpus() if gpu.memory is not None]
    return Memory(total=min(sizes), available=min(sizes)) if sizes else None


def is_out_of_memory(error: Exception) -> bool:
    """Return whether TensorFlow ran out of memory; a full disk raises the same type of error."""
    import tensorflow as tf

    message = str(error)
    return isinstance(error, tf.errors.ResourceExhaustedError) and (
        "OOM when allocating" in message or "ut of memory" in message
    )

"""Starts a process whose allocator keeps the memory that one training step leaves for the next."""

from __future__ import annotations

import os
import sys

# TensorFlow takes its large tensors from malloc at every step. By default glibc gives such blocks
# back to the system at once, which then clears fresh pages for the next step: a fifth of the step
# of a small BERT on two cores. Here they are kept, in huge pages where the system has them.
_TUNABLES = (
    "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.hugetlb=1"
)


def keep_freed_memory() -> None:
    """Starts this command again with the allocator's settings, which are read at start only.

    Does nothing outside Linux, and where the user has set `glibc.malloc` tunables.
    """
    given = os.environ.get("GLIBC_TUNABLES", "")
    if sys.platform != "linux" or "glibc.malloc" in given:
        return
    tunables = ":".join(filter(None, (given, _TUNABLES)))
    os.execve(sys.executable, sys.orig_argv, {**os.environ, "GLIBC_TUNABLES": tunables})

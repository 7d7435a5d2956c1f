"""Settings of TensorFlow's allocator, which have to stand before TensorFlow starts."""

from __future__ import annotations

import os

_TENSORFLOW_LIMIT = 2**36  # bytes; what the pool takes at most where nothing is said


def keep_freed_memory() -> None:
    """Has TensorFlow keep the memory that one training step leaves for the next.

    By default it takes large tensors from malloc at every step. glibc gives such blocks back to
    the system at once, which then clears fresh pages for the next step: a tenth of the step of a
    small BERT on two cores. With these settings tensors on processors come from a pool, as they do
    on GPUs, which may grow to all memory of the machine. Settings in the environment stay.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    megabytes = max(memory, _TENSORFLOW_LIMIT) // 2**20
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(megabytes))

"""Settings of TensorFlow's allocator, which have to stand before TensorFlow starts."""

from __future__ import annotations

import os

from bert_tf.training.devices.machine_memory import memory_and_swap

_LIBRARIES = 2**30  # bytes that TensorFlow and this program take beside the pool


def keep_freed_memory() -> None:
    """Has TensorFlow keep the memory that one training step leaves for the next.

    By default it takes large tensors from malloc at every step. glibc gives such blocks back to
    the system at once, which then clears fresh pages for the next step: a tenth of the step of a
    small BERT on two cores. With these settings tensors on processors come from a pool, as they do
    on GPUs. It may grow to all memory of the machine or container but what the libraries take, so
    that a step that does not fit is an error of TensorFlow, not the end of the process by the
    system, unless other processes need the memory too. Settings in the environment stay.
    """
    memory = memory_and_swap()
    limit = max(memory - _LIBRARIES, memory // 2)
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(limit // 2**20))

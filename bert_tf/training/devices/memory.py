"""The memory that steps are computed in, and the error of TensorFlow where it does not suffice."""

from __future__ import annotations

import tensorflow as tf

from bert_tf.training.devices.machine_memory import Memory, gpu_bytes, machine_memory
from bert_tf.training.devices.precision import has_accelerator


def memory_for_steps() -> Memory | None:
    """The memory of this machine, or of a GPU; None where it is not known, as on TPUs."""
    if not has_accelerator():
        return machine_memory()
    size = gpu_bytes()
    return None if size is None else Memory(total=size, available=size)


def is_out_of_memory(error: Exception) -> bool:
    """Whether TensorFlow had no memory for a tensor; its full disks are of the same type."""
    message = str(error)
    return isinstance(error, tf.errors.ResourceExhaustedError) and (
        "OOM when allocating" in message or "ut of memory" in message
    )

"""Divide the cores among parts of a batch, instead of the work of every operation."""

from __future__ import annotations

import tensorflow as tf

from bert_tf.base.processor import usable_cores

_PARTS = 2  # of a batch
_ROWS_PER_PART = 2  # at least


def row_shards(rows: int) -> int:
    """Return the number of parts of a batch, or micro-batch; 1 if it is not divided.

    The number does not depend on the number of cores, because each part draws its own dropout
    masks: runs are the same on all processors.

    Args:
        rows: rows of the batch; its loss must be a sum over rows.
    """
    if tf.config.list_physical_devices("GPU"):
        return 1
    return _PARTS if rows >= _ROWS_PER_PART * _PARTS else 1


def divide_cores_among_parts() -> None:
    """Configure TensorFlow to run one operation of each part at once, on its share of the cores.

    Call it before TensorFlow has run anything; afterwards it has no effect.
    """
    settle_threads(_cores_of_an_operation(), operations_at_once=_PARTS)


def settle_threads(threads: int, *, operations_at_once: int | None = None) -> bool:
    """Set the number of threads per operation.

    Args:
        threads: threads of an operation.
        operations_at_once: operations that run side by side; None leaves it to TensorFlow.

    Returns:
        False, without effect, if TensorFlow has run anything already.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        if operations_at_once is not None:
            tf.config.threading.set_inter_op_parallelism_threads(operations_at_once)
    except RuntimeError:
        return False
    return True


def operations_at_once() -> int:
    """Return how many operations must run side by side to keep all cores busy."""
    share = tf.config.threading.get_intra_op_parallelism_threads()
    return _PARTS if share == _cores_of_an_operation() else 1


def _cores_of_an_operation() -> int:
    return max(1, usable_cores() // _PARTS)

"""A batch's rows divided in two, instead of every operation's work among all cores."""

from __future__ import annotations

import tensorflow as tf

from bert_tf.base.processor import usable_cores

_PARTS = 2
_ROWS_PER_PART = 2


def row_shards(rows: int) -> int:
    """Number of parts of a batch, or micro-batch, computed side by side; 1 for no division.

    Small operations take less time than their division among cores. The number does not depend on
    the processor, since each part draws dropout of its own. The loss has to be a sum over rows.
    """
    if tf.config.list_physical_devices("GPU"):
        return 1
    return _PARTS if rows >= _ROWS_PER_PART * _PARTS else 1


def divide_cores_among_parts() -> None:
    """Configures TensorFlow to run an operation of each part at once, on its share of the cores.

    For this process, and before it has run anything: afterwards nothing changes.
    """
    settle_threads(_cores_of_an_operation(), operations_at_once=_PARTS)


def settle_threads(threads: int, *, operations_at_once: int | None = None) -> bool:
    """Sets threads per operation; False, without effect, if TensorFlow has run anything already.

    `operations_at_once` is left to TensorFlow if None.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        if operations_at_once is not None:
            tf.config.threading.set_inter_op_parallelism_threads(operations_at_once)
    except RuntimeError:
        return False
    return True


def operations_at_once() -> int:
    share = tf.config.threading.get_intra_op_parallelism_threads()
    return _PARTS if share == _cores_of_an_operation() else 1


def _cores_of_an_operation() -> int:
    return max(1, usable_cores() // _PARTS)

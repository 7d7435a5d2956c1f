"""A batch's rows divided in two, instead of every operation's work among all cores."""

from __future__ import annotations

import tensorflow as tf

from bert_tf.base.processor import usable_cores

_PARTS = 2
_ROWS_PER_PART = 2


def row_shards(rows: int) -> int:
    """How many parts of a batch are computed side by side; 1 for no division.

    The operations of a small BERT take less time than it costs to divide each of them: on two cores
    a step on short rows was hardly faster than on one. Parts of a batch need each other only when
    their gradients are added up. There are as many parts on any processor, since each draws dropout
    of its own: the number of cores is to change no random number.

    Args:
        rows: of a batch, or of a micro-batch; its loss has to be a sum over rows.
    """
    if tf.config.list_physical_devices("GPU"):
        return 1
    return _PARTS if rows >= _ROWS_PER_PART * _PARTS else 1


def divide_cores_among_parts() -> None:
    """Has TensorFlow run as many operations at once as there are parts, each on its share of the
    cores.

    For this process, and before it has run anything: afterwards nothing changes.
    """
    settle_threads(_cores_of_an_operation(), operations_at_once=_PARTS)


def settle_threads(threads: int, *, operations_at_once: int | None = None) -> bool:
    """Sets the threads of an operation, for this process and before TensorFlow has run anything.

    Args:
        threads: of an operation.
        operations_at_once: how many run side by side; None leaves that to TensorFlow.

    Returns:
        False where TensorFlow has started already: then nothing changes.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        if operations_at_once is not None:
            tf.config.threading.set_inter_op_parallelism_threads(operations_at_once)
    except RuntimeError:
        return False
    return True


def operations_at_once() -> int:
    """How many operations have to run at once to keep all cores busy."""
    share = tf.config.threading.get_intra_op_parallelism_threads()
    return _PARTS if share == _cores_of_an_operation() else 1


def _cores_of_an_operation() -> int:
    return max(1, usable_cores() // _PARTS)

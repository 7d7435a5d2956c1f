"""A batch's rows divided among the cores of a processor, instead of every operation's work."""

from __future__ import annotations

import contextlib

import tensorflow as tf

from bert_tf.base.processor import usable_cores

_MOST_CORES = 4
_ROWS_PER_CORE = 2


def row_shards(rows: int) -> int:
    """How many parts of a batch are computed side by side, each by one core; 1 for no division.

    The operations of a small BERT take less time than it costs to divide each of them: on two cores
    a step on short rows was hardly faster than on one. Parts of a batch need each other only when
    their gradients are added up. Every part reads and converts all weights, so that this is for few
    cores.

    Args:
        rows: of a batch, or of a micro-batch; its loss has to be a sum over rows.
    """
    cores = usable_cores()
    if tf.config.list_physical_devices("GPU"):
        return 1
    return cores if cores <= _MOST_CORES and rows >= _ROWS_PER_CORE * cores else 1


def run_operations_on_one_core() -> None:
    """Has TensorFlow run each operation on one core, as many operations at once as there are cores.

    For this process, and before it has run anything: afterwards nothing changes.
    """
    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(usable_cores())


def cores_left() -> int:
    """How many operations have to run at once to keep all cores busy."""
    return usable_cores() if tf.config.threading.get_intra_op_parallelism_threads() == 1 else 1

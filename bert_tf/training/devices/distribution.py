"""Global batches to replicas: replica r gets the r-th run of rows of every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tensorflow as tf

from bert_tf.training.plan.protocols import Batch


def distributed_iterator(
    strategy: tf.distribute.Strategy, make_dataset: Callable[[], tf.data.Dataset]
) -> Iterator[Batch]:
    """An iterator whose elements `strategy.run` takes, from a dataset of global batches.

    Every worker reads whole batches and keeps its own rows, so that the rows of a batch do not
    depend on the number of workers or replicas.

    Args:
        strategy: what the batches are spread over.
        make_dataset: called once a worker; its batches' rows are a multiple of the replicas.
    """
    replicas = strategy.num_replicas_in_sync
    # Autotuning has nothing to tune, and closing an iterator waits for its thread, up to a minute.
    options = tf.data.Options()
    options.autotune.enabled = False
    if replicas == 1:
        return iter(make_dataset().prefetch(2).with_options(options))

    def worker_dataset(context: tf.distribute.InputContext) -> tf.data.Dataset:
        local = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * local

        def local_rows(batch: Batch) -> Batch:
            return {name: _rows(tensor, replicas, first, local) for name, tensor in batch.items()}

        rows = make_dataset().map(local_rows).unbatch()
        return rows.prefetch(2 * local).with_options(options)

    return iter(strategy.distribute_datasets_from_function(worker_dataset))


def _rows(tensor: tf.Tensor, replicas: int, first: int, local: int) -> tf.Tensor:
    """[rows, ...] to [local, rows / replicas, ...]: the rows of `local` replicas from `first`."""
    static = tensor.shape.as_list()
    rows = static[0] // replicas if static[0] is not None else tf.shape(tensor)[0] // replicas
    rest = [
        size if size is not None else tf.shape(tensor)[axis]
        for axis, size in enumerate(static)
        if axis
    ]
    return tf.reshape(tensor, [replicas, rows, *rest])[first : first + local]

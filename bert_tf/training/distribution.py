"""Strategies of `tf.distribute`, agreement among workers, and the rows of each replica."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from signal import Signals

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, RunnerFailed, UsageError
from bert_tf.base.wording import quantity
from bert_tf.training.protocols import Batch
from bert_tf.training.timeline import StepTimer

BATCHES_AHEAD = 2  # one is handed over while the next one is prepared
# Errors that workers see when another worker is gone.
_LOST_WORKER_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


def make_strategy(name: str, tpu_address: str | None, console: Console) -> tf.distribute.Strategy:
    """Build the strategy. Call it before any variable is made.

    Args:
        name: "default" (one device), "mirrored" (all GPUs of this machine, or its logical CPU
            devices), "multi-worker" (the cluster described by the environment variable TF_CONFIG)
            or "tpu".
        tpu_address: name or grpc address of the TPU, for "tpu" only; None means the TPU of this
            machine.
        console: receives the number of replicas.

    Raises:
        UsageError: TF_CONFIG is missing or not JSON, or the TPU cannot be reached.
    """
    strategy = _BUILDERS[name](tpu_address)
    if strategy.num_replicas_in_sync > 1 or name != "default":
        replicas = quantity(strategy.num_replicas_in_sync, "replica")
        console.info(f"strategy {name}: {replicas}{_cluster(strategy)}")
    if strategy.num_replicas_in_sync == 1 and name == "mirrored":
        console.warn("strategy mirrored: there is only one device; it will do all the work")
    return strategy


def _cluster(strategy: tf.distribute.Strategy) -> str:
    """Describe the cluster and this worker's role; "" if the strategy has no cluster."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return ""
    resolver = strategy.cluster_resolver
    tasks = resolver.cluster_spec().as_dict()
    hosts = [host for kind in tasks for host in tasks[kind]]
    role = " and writes the run" if _is_chief_task(resolver) else ""
    return (
        f" on {quantity(len(hosts), 'worker')} ({', '.join(hosts)}); "
        f"this is {resolver.task_type} {resolver.task_id}{role}"
    )


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Return whether this process writes checkpoints, metrics and models; only one worker does."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return True
    return _is_chief_task(strategy.cluster_resolver)


def is_chief_process(name: str) -> bool:
    """Like `is_chief`, from the name of a strategy that has not been made yet.

    Raises:
        UsageError: TF_CONFIG is missing or not JSON.
    """
    if name != "multi-worker":
        return True
    _check_tf_config()
    return _is_chief_task(tf.distribute.cluster_resolver.TFConfigClusterResolver())


def _is_chief_task(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> bool:
    if resolver.task_type == "chief":
        return True
    has_chief = "chief" in resolver.cluster_spec().as_dict()
    return resolver.task_type in (None, "worker") and not resolver.task_id and not has_chief


def worker_count(strategy: tf.distribute.Strategy) -> int:
    """Return the number of processes that train together."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        resolver = strategy.cluster_resolver
        return max(1, sum(len(tasks) for tasks in resolver.cluster_spec().as_dict().values()))
    return 1


def _mirrored(_: str | None) -> tf.distribute.Strategy:
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy(
        [device.name for device in devices],
        cross_device_ops=tf.distribute.NcclAllReduce() if len(gpus) > 1 else None,
    )


def _multi_worker(_: str | None) -> tf.distribute.Strategy:
    _check_tf_config()
    messages = tf.distribute.experimental.CommunicationImplementation
    by = messages.NCCL if tf.config.list_physical_devices("GPU") else messages.AUTO
    return tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(implementation=by)
    )


def _check_tf_config() -> None:
    example = (
        '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, '
        '"task": {"type": "worker", "index": 0}}'
    )
    try:
        json.loads(os.environ["TF_CONFIG"])
    except KeyError:
        raise UsageError(
            "--strategy multi-worker: the environment variable TF_CONFIG is not set; set it on "
            f"every worker, for example to {example} with the worker's own index"
        ) from None
    except ValueError as error:
        raise UsageError(
            f"--strategy multi-worker: TF_CONFIG is not valid JSON ({error}); expected {example}"
        ) from None


def _tpu(address: str | None) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address or "")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, tf.errors.OpError) as error:
        raise UsageError(
            f"--strategy tpu: no TPU at {address or 'this machine'} ({error}); "
            "give its name or grpc://ADDRESS:8470 with --tpu-address"
        ) from None
    return tf.distribute.TPUStrategy(resolver)


_BUILDERS = {
    "default": lambda _: tf.distribute.get_strategy(),
    "mirrored": _mirrored,
    "multi-worker": _multi_worker,
    "tpu": _tpu,
}


@contextmanager
def naming_lost_worker(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Raise RunnerFailed instead of TensorFlow's errors if another worker is gone."""
    try:
        yield
    except _LOST_WORKER_ERRORS as error:
        if worker_count(strategy) == 1:
            raise
        raise RunnerFailed(
            f"another worker of the cluster is gone ({type(error).__name__}); start all workers "
            "again, and the run resumes from its last checkpoint"
        ) from None


class WorkerSync:
    """Means over all workers, by which they agree before they branch.

    Collective operations deadlock if workers disagree about the next one: whether the time is over,
    how many steps the next call has, whether to stop. So all decide from the same means.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy

    @property
    def writes(self) -> bool:
        """Return whether this process writes files; only the chief does."""
        return is_chief(self._strategy)

    def mean(self, numbers: list[float]) -> list[float]:
        """Return the mean of each number; every worker must call this at the same point of its
        loop.
        """
        result = self._means(tf.constant(np.asarray(numbers, dtype=np.float64)))
        return [float(value) for value in result]

    def of_chief(self, *groups: Mapping[str, float]) -> tuple[dict[str, float], ...]:
        """Return the chief's numbers, bit by bit; every worker must call this with the same names.

        Numbers that each worker computes by itself may differ in the last bit, as processors do. An
        evaluation calls this before any decision about its metrics: else one worker might stop
        early, and the others would wait for it forever.

        Args:
            groups: numbers by name, which are sent together.

        Returns:
            The groups with the numbers of the chief.
        """
        own = [value for group in groups for value in group.values()]
        if worker_count(self._strategy) == 1 or not own:
            return tuple(dict(group) for group in groups)
        sent = iter(self.first(own))
        return tuple({name: next(sent) for name in group} for group in groups)

    def first(self, numbers: list[float]) -> list[float]:
        """Return the numbers of the first replica, which is the chief's; call it like `mean`."""
        result = self._firsts(tf.constant(np.asarray(numbers, dtype=np.float64)))
        return [float(value) for value in result]

    def clock(
        self, timer: StepTimer, *, step: int, stop: Signals | None
    ) -> tuple[float, Signals | None]:
        """Agree on elapsed seconds, on the signal to stop for, and on the speed in `timer`.

        Args:
            timer: timer of this worker; its `seconds_per_step` becomes the mean of all workers.
            step: number of steps done.
            stop: signal that asked this worker to stop; None if there was none.

        Returns:
            Mean of the elapsed seconds, and the signal that any worker received, SIGTERM first.

        Raises:
            InputError: the workers are at different steps.
        """
        if worker_count(self._strategy) == 1:
            return timer.elapsed(), stop
        elapsed, seconds_per_step, mean_step, sigterm_share, sigint_share = self.mean(
            [
                timer.elapsed(),
                timer.seconds_per_step,
                step,
                float(stop is Signals.SIGTERM),
                float(stop is Signals.SIGINT),
            ]
        )
        if mean_step != step:
            raise InputError(
                f"the workers are at different steps ({step} here, {mean_step:.1f} on average); "
                "--output must be a folder that all workers share"
            )
        timer.seconds_per_step = seconds_per_step
        if sigterm_share > 0:
            return elapsed, Signals.SIGTERM
        if sigint_share > 0:
            return elapsed, Signals.SIGINT
        return elapsed, None

    @tf.function(autograph=False)
    def _means(self, values: tf.Tensor) -> tf.Tensor:
        def mean(values: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # `all_reduce` reduces to the device of its argument; `identity` makes it the replica's.
            return context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.identity(values))

        result = self._strategy.run(mean, args=(values,))
        return self._strategy.experimental_local_results(result)[0]

    @tf.function(autograph=False)
    def _firsts(self, values: tf.Tensor) -> tf.Tensor:
        def first(values: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # The others add zeros, so that the sum is exact; a mean times its number is not.
            is_first = tf.equal(context.replica_id_in_sync_group, 0)
            own = tf.where(is_first, values, tf.zeros_like(values))
            return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

        result = self._strategy.run(first, args=(values,))
        return self._strategy.experimental_local_results(result)[0]


def distributed_iterator(
    strategy: tf.distribute.Strategy,
    make_dataset: Callable[[], tf.data.Dataset],
    *,
    batches_ahead: int = BATCHES_AHEAD,
) -> Iterator[Batch]:
    """Iterate over elements for `strategy.run`, from a dataset of global batches.

    Every worker reads whole batches and keeps its own rows, so that the rows of a batch do not
    depend on the number of workers or replicas. Replica r gets the r-th run of rows of every batch.

    Args:
        strategy: strategy that batches are distributed by.
        make_dataset: opens the dataset, once per worker. The number of rows of each batch must be a
            multiple of the number of replicas.
        batches_ahead: how many batches are prepared while others are computed.
    """
    replicas = strategy.num_replicas_in_sync
    # There is nothing to tune here, and closing an iterator would wait up to a minute for the
    # thread of the tuner.
    options = tf.data.Options()
    options.autotune.enabled = False
    if replicas == 1:
        return iter(make_dataset().prefetch(batches_ahead).with_options(options))

    def worker_dataset(context: tf.distribute.InputContext) -> tf.data.Dataset:
        local = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * local

        @tf.autograph.experimental.do_not_convert
        def local_rows(batch: Batch) -> Batch:
            return {
                name: split_rows(tensor, replicas)[first : first + local]
                for name, tensor in batch.items()
            }

        rows = make_dataset().map(local_rows).unbatch()
        return rows.prefetch(batches_ahead * local).with_options(options)

    return iter(strategy.distribute_datasets_from_function(worker_dataset))


def split_rows(tensor: tf.Tensor, parts: int) -> tf.Tensor:
    """Reshape [rows, ...] to [parts, rows / parts, ...]; `parts` must divide the rows."""
    sizes = [
        size if size is not None else tf.shape(tensor)[axis]
        for axis, size in enumerate(tensor.shape.as_list())
    ]
    return tf.reshape(tensor, [parts, sizes[0] // parts, *sizes[1:]])

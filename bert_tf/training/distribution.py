"""Strategies of `tf.distribute`, agreement among workers, and batches for replicas."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import Signals

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, RunnerFailed, UsageError
from bert_tf.base.wording import quantity
from bert_tf.training.protocols import Batch
from bert_tf.training.timeline import StepTimer

# What the others see of a worker that is gone.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


def make_strategy(name: str, tpu_address: str | None, console: Console) -> tf.distribute.Strategy:
    """Builds the strategy before any variable is made.

    `name` is "default" (one device), "mirrored" (all GPUs of this machine, or its logical CPU
    devices), "multi-worker" (of the environment variable TF_CONFIG) or "tpu" (at the name or grpc
    address `tpu_address`). Raises UsageError if TF_CONFIG is missing or not JSON, or the TPU cannot
    be reached.
    """
    strategy = _BUILDERS[name](tpu_address)
    if strategy.num_replicas_in_sync > 1 or name != "default":
        replicas = quantity(strategy.num_replicas_in_sync, "replica")
        console.info(f"strategy {name}: {replicas}{_cluster(strategy)}")
    if strategy.num_replicas_in_sync == 1 and name == "mirrored":
        console.warn("strategy mirrored: there is only one device; it will do all the work")
    return strategy


def _cluster(strategy: tf.distribute.Strategy) -> str:
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
    """Whether this process writes checkpoints, metrics and models; only one worker does."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return True
    return _is_chief_task(strategy.cluster_resolver)


def is_chief_process(name: str) -> bool:
    """As `is_chief`, by the name of a strategy not made yet; checks TF_CONFIG."""
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
    """Raises RunnerFailed instead of TensorFlow's errors when another worker is gone."""
    try:
        yield
    except _LOST as error:
        if worker_count(strategy) == 1:
            raise
        raise RunnerFailed(
            f"another worker of the cluster is gone ({type(error).__name__}); start all workers "
            "again, and the run resumes from its last checkpoint"
        ) from None


class WorkerSync:
    """Means over the workers, which must agree on measurements before they branch."""

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy

    def mean(self, numbers: list[float]) -> list[float]:
        """Means; every worker calls this at the same point of its loop."""
        result = self._means(tf.constant(np.asarray(numbers, dtype=np.float64)))
        return [float(value) for value in result]

    def clock(
        self, timer: StepTimer, *, step: int, stop: Signals | None
    ) -> tuple[float, Signals | None]:
        """Agrees on elapsed seconds, the signal to stop for, and the speed in `timer`.

        SIGTERM takes precedence over other signals. Raises InputError if the workers are at
        different steps.
        """
        if worker_count(self._strategy) == 1:
            return timer.elapsed(), stop
        signals = (Signals.SIGTERM, Signals.SIGINT)
        asked = [float(stop is each) for each in signals]
        elapsed, seconds_per_step, mean_step, *asked = self.mean(
            [timer.elapsed(), timer.seconds_per_step, step, *asked]
        )
        if mean_step != step:
            raise InputError(
                f"the workers are at different steps ({step} here, {mean_step:.1f} on average); "
                "--output must be a folder that all workers share"
            )
        timer.seconds_per_step = seconds_per_step
        return elapsed, next(
            (each for each, part in zip(signals, asked, strict=True) if part), None
        )

    @tf.function(autograph=False)
    def _means(self, values: tf.Tensor) -> tf.Tensor:
        def mean(values: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # The copy is on the replica's device, where `all_reduce` looks for its destination.
            return context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.identity(values))

        result = self._strategy.run(mean, args=(values,))
        return self._strategy.experimental_local_results(result)[0]


def distributed_iterator(
    strategy: tf.distribute.Strategy, make_dataset: Callable[[], tf.data.Dataset]
) -> Iterator[Batch]:
    """Iterates over elements for `strategy.run`, from a dataset of global batches.

    Replica r gets the r-th run of rows of every batch, whose rows are a multiple of the replicas.
    Every worker reads whole batches and keeps its own rows, so that the rows of a batch do not
    depend on the number of workers or replicas.
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

        @tf.autograph.experimental.do_not_convert
        def local_rows(batch: Batch) -> Batch:
            return {
                name: split_rows(tensor, replicas)[first : first + local]
                for name, tensor in batch.items()
            }

        rows = make_dataset().map(local_rows).unbatch()
        return rows.prefetch(2 * local).with_options(options)

    return iter(strategy.distribute_datasets_from_function(worker_dataset))


def split_rows(tensor: tf.Tensor, parts: int) -> tf.Tensor:
    """[rows, ...] to [parts, rows / parts, ...]."""
    sizes = [
        size if size is not None else tf.shape(tensor)[axis]
        for axis, size in enumerate(tensor.shape.as_list())
    ]
    return tf.reshape(tensor, [parts, sizes[0] // parts, *sizes[1:]])

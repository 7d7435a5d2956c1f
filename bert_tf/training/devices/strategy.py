"""Which tf.distribute strategy a run uses."""

from __future__ import annotations

import json
import os

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity


def make_strategy(name: str, tpu_address: str | None, console: Console) -> tf.distribute.Strategy:
    """Builds the strategy before any variable is made.

    Args:
        name: "default" (one device), "mirrored" (all GPUs of this machine, or its logical CPU
            devices), "multi-worker" (the workers named in the environment variable TF_CONFIG) or
            "tpu".
        tpu_address: name or grpc address of the TPU; only for "tpu".
        console: where the number of replicas is reported.

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
    """The cluster as a worker sees it."""
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
    """Whether this process writes checkpoints, metrics and models; of several workers one does."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return True
    return _is_chief_task(strategy.cluster_resolver)


def is_chief_process(name: str) -> bool:
    """The same for a strategy that is not made yet, by its name.

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
    """Processes that train together."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        resolver = strategy.cluster_resolver
        return max(1, sum(len(tasks) for tasks in resolver.cluster_spec().as_dict().values()))
    return 1


def _default(_: str | None) -> tf.distribute.Strategy:
    return tf.distribute.get_strategy()


def _mirrored(_: str | None) -> tf.distribute.Strategy:
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _multi_worker(_: str | None) -> tf.distribute.Strategy:
    _check_tf_config()
    return tf.distribute.MultiWorkerMirroredStrategy()


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
    "default": _default,
    "mirrored": _mirrored,
    "multi-worker": _multi_worker,
    "tpu": _tpu,
}

"""Numbers that all workers must decide by alike, though each measures its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from signal import Signals

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError, RunnerFailed
from bert_tf.training.devices.strategy import worker_count
from bert_tf.training.plan.step_timer import StepTimer

# What the others see of a worker that is gone.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


@contextmanager
def naming_lost_worker(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Says what happened where a step ends because another worker is gone.

    Raises:
        RunnerFailed: instead of TensorFlow's errors.
    """
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
    """Means over the workers of a strategy."""

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy

    def mean(self, numbers: list[float]) -> list[float]:
        """The mean of each number; every worker calls this at the same point of its loop."""
        result = self._means(tf.constant(np.asarray(numbers, dtype=np.float64)))
        return [float(value) for value in result]

    def clock(
        self, timer: StepTimer, *, step: int, stop: Signals | None
    ) -> tuple[float, Signals | None]:
        """Elapsed seconds and the signal to stop for, the same on all workers, as then is the
        speed in `timer`.

        Args:
            timer: this worker's.
            step: steps done.
            stop: the signal that asked this worker to stop, if one did; SIGTERM goes before others.

        Raises:
            InputError: the workers are at different steps.
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

    @tf.function
    def _means(self, values: tf.Tensor) -> tf.Tensor:
        def mean(values: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # The copy is on the replica's device, where `all_reduce` looks for its destination.
            return context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.identity(values))

        result = self._strategy.run(mean, args=(values,))
        return self._strategy.experimental_local_results(result)[0]

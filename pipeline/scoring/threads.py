"""How many threads a model gets in each worker process."""

from __future__ import annotations

from bert_tf.base.processor import usable_cores
from bert_tf.config.sections import RunnerConfig


def threads_per_worker(runner: RunnerConfig) -> int | None:
    """Threads of a worker process on this machine; None on other runners, whose cores they are."""
    if runner.runner != "local":
        return None
    return max(1, usable_cores() // max(1, runner.workers))

"""How many threads a model gets in each worker process."""

from __future__ import annotations

from bert_tf.base.processor import usable_cores
from bert_tf.config.sections import RunnerConfig


def threads_per_worker(runner: RunnerConfig) -> int | None:
    """Threads of one operation where the cores are shared by worker processes, else None."""
    if runner.runner != "local" or runner.workers <= 1:
        return None
    return max(1, usable_cores() // runner.workers)

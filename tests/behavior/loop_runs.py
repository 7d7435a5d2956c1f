"""Interrupted runs of a loop, and the losses that they logged."""

import pytest

from bert_tf.base.errors import StoppedEarly
from bert_tf.training.metrics_log import read_metrics


def losses(run_directory):
    """Return the numbers of each train line but those of the clock, by step."""
    return {
        line["step"]: {
            name: value
            for name, value in line.items()
            if name not in ("time", "examples_per_second", "tokens_per_second")
        }
        for line in read_metrics(run_directory / "metrics.jsonl")
        if line["split"] == "train"
    }


def run_until(loop, step, *, save=True):
    """Run a loop of one step a call until `step`; then asks it to stop, or breaks it."""
    run_one = loop.run_step

    def run(*arguments, first_step, **keywords):
        if first_step == step - 1:
            loop.request_stop()
        if first_step == step:
            raise KeyboardInterrupt
        return run_one(*arguments, first_step=first_step, **keywords)

    loop.run_step = run
    if not save:
        loop._save = lambda save=loop._save: save() if loop._step != step else None
    with pytest.raises(StoppedEarly):
        loop.run()

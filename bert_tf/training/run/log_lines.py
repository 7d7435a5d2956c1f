"""Numbers of single steps to the lines of metrics.jsonl and of the console."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.base.wording import shown_duration

Line = dict[str, Any]


class LineBuilder:
    """Collects the numbers of steps until a line is written.

    Attributes:
        pending: by name, a number for every step since the last line; JSON values, saved in
            checkpoints so that a line's means survive an interruption.
    """

    def __init__(self, pending: dict[str, list[float]] | None = None):
        self.pending = pending or {}
        self._fastest = 0.0

    def add(self, results: dict[str, np.ndarray]) -> None:
        """Takes the numbers of some steps, float [n] by name (see `TrainingStep.run`)."""
        for name, values in results.items():
            self.pending.setdefault(name, []).extend(float(value) for value in values)

    def train_line(
        self, *, step: int, elapsed: float, seconds: float, peak_flops: float | None = None
    ) -> Line | None:
        """The line for all steps since the last one; None if all of them overflowed.

        Losses and metrics are means over the steps, the learning rate and the loss scale are
        the last step's.

        Args:
            step: steps done in all.
            elapsed: seconds since the start of the run.
            seconds: seconds these steps took.
            peak_flops: operations per second of the machine at its peak, which the steps' `flops`
                are divided by; where steps were faster, their rate is the peak.
        """
        pending, self.pending = self.pending, {}
        made = np.array(pending.pop("finite")) > 0
        if not made.any():
            return None
        examples, tokens = sum(pending.pop("examples")), sum(pending.pop("tokens"))
        flops = sum(pending.pop("flops", []))
        last = {name: pending.pop(name)[-1] for name in ("learning_rate", "loss_scale")}
        if last["loss_scale"] == 1.0:
            del last["loss_scale"]
        means = {
            name: math.fsum(np.array(values)[made]) / int(made.sum())
            for name, values in pending.items()
        }
        line = {
            "step": step,
            "split": "train",
            "time": round(elapsed, 3),
            **means,
            **last,
            "examples_per_second": round(examples / seconds, 3),
            "tokens_per_second": round(tokens / seconds, 1),
        }
        if flops and peak_flops:
            self._fastest = max(self._fastest, peak_flops, flops / seconds)
            line["mfu"] = round(flops / seconds / self._fastest, 4)
        return line


def progress_text(line: Line, *, total_steps: int, seconds_left: float) -> str:
    """One train line for the console: how far, how good, how fast, how long."""
    mfu = f"{line['mfu']:.0%} of peak  " if "mfu" in line else ""
    return (
        f"step {line['step']}/{total_steps}  loss {line['loss']:.4f}  "
        f"{line['examples_per_second']:,.1f} examples/s  "
        f"{line['tokens_per_second']:,.0f} tokens/s  {mfu}"
        f"{shown_duration(seconds_left)} left"
    )


def evaluation_text(line: Line, shown: Sequence[str] = ()) -> str:
    """One eval line for the console.

    Args:
        line: as in metrics.jsonl.
        shown: the metrics to name, in this order, those that the line lacks left out; () for all.
    """
    names = shown or [name for name in line if name not in ("step", "split", "time")]
    numbers = [f"{name} {line[name]:.4f}" for name in names if name in line]
    return f"step {line['step']}, eval: " + "  ".join(numbers)

"""What the peers that pretrain with HuggingFace's `Trainer` share."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

from transformers import Trainer, TrainingArguments

_TRIAL_STEPS = 40
_WARM_STEPS = 15


def training_arguments(settings: dict[str, Any], steps: int, **more: Any) -> TrainingArguments:
    """Return the arguments of a run on the CPU that stores and reports nothing.

    Args:
        settings: `batch_size`, `learning_rate`, `warmup_proportion` and `seed`.
        steps: length of the run.
        **more: further arguments.
    """
    return TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=steps,
        per_device_train_batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"],
        warmup_steps=int(settings["warmup_proportion"] * steps),
        lr_scheduler_type="linear",
        weight_decay=0.01,
        seed=settings["seed"],
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **more,
    )


def seconds_per_step(make_trainer: Callable[[int], Trainer]) -> float:
    """Measure a step by two short runs, of models that are thrown away.

    Args:
        make_trainer: makes a model and its trainer for a number of steps.
    """
    seconds = []
    for steps in (_WARM_STEPS, _TRIAL_STEPS):
        trainer = make_trainer(steps)
        start = time.monotonic()
        trainer.train()
        seconds.append(time.monotonic() - start)
    return (seconds[1] - seconds[0]) / (_TRIAL_STEPS - _WARM_STEPS)

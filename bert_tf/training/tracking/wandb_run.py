"""Runs of Weights & Biases, kept in the run directory unless WANDB_MODE says otherwise.

Weights & Biases reads its own variables WANDB_*; `wandb sync` uploads offline runs.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

from bert_tf.training.tracking.tracker import SPLITS, TrackedRun, named_by_split

_PROJECT = "bert-pipeline"


class WandbRun:
    """A `Tracker`: metrics as `train/loss` and `eval/loss` over `train/step` and `eval/step`.

    An offline run cannot be asked for its newest steps, so steps are noted before they are sent.
    """

    def __init__(self, run: TrackedRun):
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb  # reads the environment when it is imported

        self._run = run
        self._state = run.read_state("wandb") or {"id": uuid.uuid4().hex, "steps": {}}
        run.write_state("wandb", self._state)
        mode = os.environ.get("WANDB_MODE", "offline")
        self._wandb = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            name=os.environ.get("WANDB_NAME", run.name),
            id=self._state["id"],
            resume=None if mode == "offline" else "allow",
            mode=mode,
            dir=str(run.folder),
            config=dict(run.settings),
            settings=wandb.Settings(console="off", silent=True),
        )
        for split in SPLITS:
            self._wandb.define_metric(f"{split}/*", step_metric=f"{split}/step")

    def newest_steps(self) -> Mapping[str, int]:
        noted = self._state["steps"]
        there = {split: self._wandb.summary.get(f"{split}/step") for split in SPLITS}
        return {split: max(noted.get(split, -1), there[split] or -1) for split in SPLITS}

    def write(self, line: Mapping[str, Any], seconds: float) -> None:
        split = line["split"]
        step = line["step"]
        self._state["steps"][split] = step
        self._run.write_state("wandb", self._state)
        self._wandb.log({f"{split}/step": step, **named_by_split(line)})

    def close(self, *, is_finished: bool) -> None:
        self._wandb.finish(exit_code=0 if is_finished else 1)


open_tracker = WandbRun

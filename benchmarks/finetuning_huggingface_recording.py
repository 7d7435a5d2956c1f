"""HuggingFace's side of benchmarks/finetuning_same_batches.py: a Trainer that keeps its batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import Trainer


class RecordingTrainer(Trainer):
    """Keeps the inputs and results of every step, and the head at the start.

    Arguments as of `Trainer`, which has to log every step.
    """

    def __init__(self, **arguments: Any):
        super().__init__(**arguments)
        self._batches: list[dict[str, np.ndarray]] = []
        self._head = {
            name: parameter.detach().numpy().copy()
            for name, parameter in self.model.named_parameters()
            if name.startswith("classifier.")
        }

    def training_step(self, model: Any, inputs: dict[str, torch.Tensor], *args: Any) -> Any:
        """As the Trainer's, for a batch that is kept."""
        self._batches.append({name: values.numpy().copy() for name, values in inputs.items()})
        return super().training_step(model, inputs, *args)

    def save_records(self, path: str, evaluation: list[dict[str, Any]], tags: list[str]) -> None:
        """Write an .npz: `batch/STEP/NAME`, `head/NAME`, and by step learning rate and loss.

        For the metric also `eval/NAME`, the features of all rows end to end, `eval/lengths`, the
        tokens of each, and `tags`.
        """
        steps = [entry for entry in self.state.log_history if "grad_norm" in entry]
        arrays: dict[str, Any] = {f"head/{name}": values for name, values in self._head.items()}
        for step, batch in enumerate(self._batches):
            for name, values in batch.items():
                arrays[f"batch/{step}/{name}"] = values.astype(np.int32)
        for name in evaluation[0]:
            arrays[f"eval/{name}"] = np.hstack([row[name] for row in evaluation]).astype(np.int32)
        arrays["eval/lengths"] = np.array([len(row["input_ids"]) for row in evaluation])
        arrays["tags"] = np.array(tags)
        for ours, theirs in (("learning_rates", "learning_rate"), ("losses", "loss")):
            arrays[ours] = np.array([entry[theirs] for entry in steps], np.float32)
        np.savez_compressed(path, **arrays)

"""HuggingFace's side of benchmarks/from_scratch.py: the Trainer with `BertForPreTraining`.

    python benchmarks/from_scratch_huggingface.py EXAMPLES SETTINGS

EXAMPLES is an .npz file of training and held-out examples, SETTINGS a JSON text with `config` (of
the model), `minutes`, `learning_rate`, `batch_size`, `warmup_proportion` and `seed`. The number of
steps is chosen so that training takes the minutes, from the time of the first ones. Prints a line
of JSON. Needs torch, transformers and accelerate.
"""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
from trainer_huggingface import seconds_per_step, training_arguments
from transformers import (
    BertConfig,
    BertForPreTraining,
    Trainer,
    TrainerCallback,
    set_seed,
)


class Examples(Dataset):
    """The examples of one split as `BertForPreTraining` takes them.

    `labels` are -100 but for the masked positions, as DataCollatorForLanguageModeling makes them.
    """

    def __init__(self, arrays: Any, split: str):
        def tensor(name: str) -> torch.Tensor:
            return torch.from_numpy(arrays[f"{split}/{name}"].astype(np.int64))

        ids = tensor("input_word_ids")
        counted = tensor("masked_lm_weights") > 0
        labels = torch.full_like(ids, -100)
        rows = torch.arange(len(ids)).unsqueeze(1).expand_as(counted)
        labels[rows[counted], tensor("masked_lm_positions")[counted]] = tensor("masked_lm_ids")[
            counted
        ]
        self._columns = {
            "input_ids": ids,
            "attention_mask": tensor("input_mask"),
            "token_type_ids": tensor("input_type_ids"),
            "labels": labels,
            "next_sentence_label": tensor("next_sentence_labels"),
        }

    def __len__(self) -> int:
        return len(self._columns["labels"])

    def __getitem__(self, index: int | slice) -> dict[str, torch.Tensor]:
        return {name: column[index] for name, column in self._columns.items()}


class StopAtTime(TrainerCallback):
    """Ends training when its time is up."""

    def __init__(self, minutes: float):
        self._seconds = 60 * minutes

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end = time.monotonic() + self._seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop |= time.monotonic() >= self._end


def make_trainer(
    model: BertForPreTraining, train: Examples, settings: dict, *, steps: int, minutes: float
) -> Trainer:
    """Return a trainer that ends after a number of steps or minutes."""
    return Trainer(
        model=model,
        args=training_arguments(settings, steps, adam_epsilon=1e-6),
        train_dataset=train,
        callbacks=[StopAtTime(minutes)],
    )


def held_out_losses(model: BertForPreTraining, examples: Examples) -> dict[str, float]:
    """Means over all masked positions, and over all pairs."""
    masked = correct = pairs = 0
    loss = pair_hits = 0.0
    model.eval()
    with torch.no_grad():
        for begin in range(0, len(examples), 64):
            batch = examples[slice(begin, begin + 64)]
            labels, pair_labels = batch.pop("labels"), batch.pop("next_sentence_label")
            outputs = model(**batch)
            counted = labels != -100
            logits, targets = outputs.prediction_logits[counted], labels[counted]
            loss += cross_entropy(logits, targets, reduction="sum").item()
            correct += (logits.argmax(-1) == targets).sum().item()
            masked += len(targets)
            pair_hits += (outputs.seq_relationship_logits.argmax(-1) == pair_labels).sum().item()
            pairs += len(pair_labels)
    return {
        "mlm_loss": loss / masked,
        "mlm_accuracy": correct / masked,
        "nsp_accuracy": pair_hits / pairs,
    }


def main() -> None:
    arrays, settings = np.load(sys.argv[1]), json.loads(sys.argv[2])
    train, held_out = Examples(arrays, "train"), Examples(arrays, "eval")
    config = BertConfig(**settings["config"])
    set_seed(settings["seed"])
    seconds = seconds_per_step(
        lambda steps: make_trainer(
            BertForPreTraining(config), train, settings, steps=steps, minutes=math.inf
        )
    )
    set_seed(settings["seed"])
    model = BertForPreTraining(config)
    steps = max(1, int(60 * settings["minutes"] / seconds))
    trainer = make_trainer(model, train, settings, steps=steps, minutes=settings["minutes"])
    start = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - start
    answer = {"steps": trainer.state.global_step, "planned": steps, "seconds": seconds}
    print(json.dumps({**answer, **held_out_losses(model, held_out)}), flush=True)


if __name__ == "__main__":
    main()

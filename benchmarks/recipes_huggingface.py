"""HuggingFace's side of benchmarks/recipes.py: masked language modeling as `run_mlm.py` does it.

    python benchmarks/recipes_huggingface.py EXAMPLES SETTINGS OUTPUT

EXAMPLES is an .npz file with `ids`, int32 [rows, length], padded with 0 (the texts of a recipe, not
masked); SETTINGS a JSON text with `config` (of the model), `minutes`, `learning_rate`,
`batch_size`, `warmup_proportion`, `vocab` (file) and `seed`. 15% of the tokens are masked anew in
every batch by DataCollatorForLanguageModeling, with 80% [MASK], 10% random and 10% kept, and the
learning rate falls linearly. The number of steps is chosen so that training takes the minutes, from
the time of the first ones. Writes a HuggingFace folder, and prints a line of JSON. Needs torch,
transformers and accelerate.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    set_seed,
)

_TRIAL_STEPS = 40
_WARM_STEPS = 15


class Rows(Dataset):
    """Rows of ids as the collator takes them, without padding."""

    def __init__(self, ids: np.ndarray):
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self._ids[index]
        return {"input_ids": row[: int(np.count_nonzero(row))].tolist()}


def make_trainer(
    model: BertForMaskedLM, rows: Rows, tokenizer: BertTokenizerFast, settings: dict, steps: int
) -> Trainer:
    arguments = TrainingArguments(
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
    )
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    return Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator)


def seconds_per_step(config: BertConfig, rows: Rows, tokenizer: Any, settings: dict) -> float:
    """By a short trial of a model that is thrown away."""
    seconds = []
    for steps in (_WARM_STEPS, _TRIAL_STEPS):
        trainer = make_trainer(BertForMaskedLM(config), rows, tokenizer, settings, steps)
        start = time.monotonic()
        trainer.train()
        seconds.append(time.monotonic() - start)
    return (seconds[1] - seconds[0]) / (_TRIAL_STEPS - _WARM_STEPS)


def main() -> None:
    """Trains and writes the model."""
    settings = json.loads(sys.argv[2])
    torch.set_num_threads(settings.get("threads") or torch.get_num_threads())
    rows = Rows(np.load(sys.argv[1])["ids"])
    tokenizer = BertTokenizerFast(settings["vocab"], do_lower_case=settings["lowercase"])
    config = BertConfig(**settings["config"])
    set_seed(settings["seed"])
    steps = int(60 * settings["minutes"] / seconds_per_step(config, rows, tokenizer, settings))
    set_seed(settings["seed"])
    model = BertForMaskedLM(config)
    start = time.monotonic()
    make_trainer(model, rows, tokenizer, settings, max(1, steps)).train()
    seconds = time.monotonic() - start
    model.save_pretrained(sys.argv[3])
    tokenizer.save_pretrained(sys.argv[3])
    print(json.dumps({"steps": steps, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()

"""HuggingFace's side of benchmarks/recipes.py: masked language modeling as `run_mlm.py` does it.

    python benchmarks/recipes_huggingface.py EXAMPLES SETTINGS OUTPUT

EXAMPLES is an .npz file with `ids`, int32 [rows, length], padded with 0 (the texts of a recipe, not
masked); SETTINGS a JSON text with `config` (of the model), `minutes`, `steps`, `learning_rate`,
`batch_size`, `warmup_proportion`, `vocab` (file) and `seed`. 15% of the tokens are masked anew in
every batch by DataCollatorForLanguageModeling, with 80% [MASK], 10% random and 10% kept, and the
learning rate falls linearly. With `steps` 0, their number is chosen so that training takes the
minutes, from the time of the first ones. Writes a HuggingFace folder, and prints a line of JSON.
Needs torch, transformers and accelerate.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from trainer_huggingface import seconds_per_step, training_arguments
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    DataCollatorForLanguageModeling,
    Trainer,
    set_seed,
)


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
    """Return a trainer that masks rows anew in every epoch."""
    return Trainer(
        model=model,
        args=training_arguments(settings, steps),
        train_dataset=rows,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15),
    )


def main() -> None:
    """Train and write the model."""
    settings = json.loads(sys.argv[2])
    torch.set_num_threads(settings.get("threads") or torch.get_num_threads())
    rows = Rows(np.load(sys.argv[1])["ids"])
    tokenizer = BertTokenizerFast(settings["vocab"], do_lower_case=settings["lowercase"])
    config = BertConfig(**settings["config"])
    steps = settings["steps"]
    if not steps:
        set_seed(settings["seed"])
        seconds = seconds_per_step(
            lambda steps: make_trainer(BertForMaskedLM(config), rows, tokenizer, settings, steps)
        )
        steps = int(60 * settings["minutes"] / seconds)
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

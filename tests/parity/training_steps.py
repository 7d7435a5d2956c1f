"""Writes losses of HuggingFace's Trainer, for tests/bert_tf/training/test_step_huggingface.py.

    python tests/parity/training_steps.py tests/golden/models/classification OUTPUT.npz

Ten steps without dropout on the model of the first folder: AdamW, weight decay, a warmup and a
linear decay, and gradients above and below the norm that they are clipped to. A loss depends on all
updates before it. Runs in an environment made from requirements.in.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import torch
from transformers import BertForSequenceClassification, Trainer, TrainingArguments

STEPS = 10
ROWS = 4
LENGTH = 12
LABELS = 3
VOCABULARY = 40


def main() -> None:
    folder, output = sys.argv[1:]
    random = np.random.default_rng(7)
    count = STEPS * ROWS
    mask = np.arange(LENGTH) < random.integers(LENGTH // 2, LENGTH + 1, count)[:, None]
    rows = {
        "input_ids": np.where(mask, random.integers(5, VOCABULARY, mask.shape), 0),
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": (mask & (np.arange(LENGTH) >= LENGTH // 3)).astype(np.int64),
        "labels": random.integers(0, LABELS, count),
    }
    trainer = Trainer(
        model=BertForSequenceClassification.from_pretrained(
            folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        ),
        args=TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            max_steps=STEPS,
            per_device_train_batch_size=ROWS,
            learning_rate=0.03,
            warmup_steps=2,
            lr_scheduler_type="linear",
            weight_decay=0.1,
            adam_epsilon=1e-6,
            max_grad_norm=1.0,
            train_sampling_strategy="sequential",
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=[
            {name: torch.tensor(values[row]) for name, values in rows.items()}
            for row in range(count)
        ],
    )
    trainer.train()
    steps = [entry for entry in trainer.state.log_history if "grad_norm" in entry]
    np.savez_compressed(
        output,
        **{name: values.astype(np.int32) for name, values in rows.items()},
        learning_rates=np.float32([entry["learning_rate"] for entry in steps]),
        losses=np.float32([entry["loss"] for entry in steps]),
        gradient_norms=np.float32([entry["grad_norm"] for entry in steps]),
    )


if __name__ == "__main__":
    main()

"""HuggingFace's side of benchmarks/finetuning.py: the Trainer on rows of a TSV file.

    python benchmarks/finetuning_huggingface.py SETTINGS

SETTINGS is a JSON text with the options of benchmarks/finetuning.py, `seed`, `precision` ("float32"
or "bfloat16") and `answer`, the file that a JSON object is written to. Needs torch, transformers
and accelerate.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)


def read_rows(path: str, limit: int) -> list[dict[str, str]]:
    """Rows of a TSV file without quoting, as GLUE has them."""
    with Path(path).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return rows[: limit or None]


def features(rows: list[dict[str, str]], settings: dict, tokenizer: Any, labels: list[str]) -> Any:
    """The rows as the Trainer's collator takes them."""
    pair = settings["text_pair_column"]
    encoded = tokenizer(
        [row[settings["text_column"]] for row in rows],
        None if pair is None else [row[pair] for row in rows],
        truncation=True,
        max_length=settings["max_seq_length"],
    )
    numbers = {label: number for number, label in enumerate(labels)}
    return [
        {
            **{name: values[index] for name, values in encoded.items()},
            "labels": numbers[row[settings["label_column"]]],
        }
        for index, row in enumerate(rows)
    ]


def accuracy(predicted: Any) -> dict[str, float]:
    hits = predicted.predictions.argmax(-1) == predicted.label_ids
    return {"accuracy": float(hits.mean())}


def main() -> None:
    settings = json.loads(sys.argv[1])
    set_seed(settings["seed"])
    train_rows = read_rows(settings["train"], settings["rows"])
    labels = sorted({row[settings["label_column"]] for row in train_rows})
    tokenizer = AutoTokenizer.from_pretrained(settings["init"])
    train = features(train_rows, settings, tokenizer, labels)
    held_out = features(read_rows(settings["eval"], 0), settings, tokenizer, labels)
    model = AutoModelForSequenceClassification.from_pretrained(
        settings["init"], num_labels=len(labels)
    )
    steps = -(-len(train) // settings["batch_size"]) * settings["epochs"]
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            num_train_epochs=settings["epochs"],
            per_device_train_batch_size=settings["batch_size"],
            per_device_eval_batch_size=64,
            learning_rate=settings["learning_rate"],
            warmup_steps=int(0.1 * steps),
            lr_scheduler_type="linear",
            weight_decay=0.01,
            adam_epsilon=1e-6,
            train_sampling_strategy="group_by_length",
            bf16=settings["precision"] == "bfloat16",
            seed=settings["seed"],
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=train,
        eval_dataset=held_out,
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=accuracy,
    )
    start = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - start
    found = trainer.evaluate()
    answer = {"train": seconds, "accuracy": found["eval_accuracy"], "loss": found["eval_loss"]}
    Path(settings["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()

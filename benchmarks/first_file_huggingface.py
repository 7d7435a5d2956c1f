"""HuggingFace's side of benchmarks/first_file.py: the Trainer with its defaults.

    python benchmarks/first_file_huggingface.py SETTINGS

SETTINGS is a JSON text with `init`, `train` and `test` (CSV with `text`, `text_pair`, `label`),
`is_regression`, `has_pairs` and `seed`. Prints accuracy or Spearman's correlation on the test rows.
Needs torch, transformers and accelerate.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

MAX_LENGTH = 128


def main() -> None:
    settings = json.loads(sys.argv[1])
    tokenizer = AutoTokenizer.from_pretrained(settings["init"])
    rows = {name: read_rows(settings[name]) for name in ("train", "test")}
    labels = sorted({row["label"] for row in rows["train"]})

    def features(listed: list[dict[str, str]]) -> list[dict[str, Any]]:
        pairs = [row["text_pair"] for row in listed] if settings["has_pairs"] else None
        texts = [row["text"] for row in listed]
        encoded = tokenizer(texts, pairs, truncation=True, max_length=MAX_LENGTH)
        return [
            {**{name: values[index] for name, values in encoded.items()}, "labels": target(row)}
            for index, row in enumerate(listed)
        ]

    def target(row: dict[str, str]) -> float | int:
        return float(row["label"]) if settings["is_regression"] else labels.index(row["label"])

    model = AutoModelForSequenceClassification.from_pretrained(
        settings["init"],
        num_labels=1 if settings["is_regression"] else len(labels),
        problem_type="regression" if settings["is_regression"] else None,
    )
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), seed=settings["seed"], report_to=[], save_strategy="no"
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=features(rows["train"]),
        data_collator=DataCollatorWithPadding(tokenizer),
    )
    trainer.train()
    found = trainer.predict(features(rows["test"]))
    if settings["is_regression"]:
        print(spearmanr(found.predictions[:, 0], found.label_ids).statistic)
    else:
        print(np.mean(found.predictions.argmax(-1) == found.label_ids))


def read_rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


if __name__ == "__main__":
    main()

"""HuggingFace's side of benchmarks/first_file.py: the Trainer with its defaults.

    python benchmarks/first_file_huggingface.py SETTINGS

SETTINGS is a JSON text with `init`, `task`, `train` and `eval` (CSV with `text`, `text_pair`,
`label`, or CoNLL columns), `has_pairs` and `seed`. Prints accuracy, Spearman's correlation or F1 of
entities on the test rows, and the number of steps, as JSON. Needs torch, transformers, accelerate
and seqeval.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from finetuning_huggingface_tagging import Tagging
from scipy.stats import spearmanr
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)

MAX_LENGTH = 128


class Labels:
    """CSV rows of texts or pairs of texts with a label or a number."""

    def __init__(self, settings: dict[str, Any], tokenizer: Any):
        self._settings, self._tokenizer = settings, tokenizer
        self._is_regression = settings["task"] == "regression"
        rows = {name: read_rows(settings[name]) for name in ("train", "eval")}
        self._labels = sorted({row["label"] for row in rows["train"]})
        self.train, self.eval = (self._features(listed) for listed in rows.values())
        self.collator = DataCollatorWithPadding(tokenizer)
        self.model = AutoModelForSequenceClassification.from_pretrained(
            settings["init"],
            num_labels=1 if self._is_regression else len(self._labels),
            problem_type="regression" if self._is_regression else None,
        )

    def evaluate(self, trainer: Trainer) -> dict[str, Any]:
        found = trainer.predict(self.eval)
        if self._is_regression:
            metric = spearmanr(found.predictions[:, 0], found.label_ids).statistic
        else:
            metric = np.mean(found.predictions.argmax(-1) == found.label_ids)
        return {"metric": float(metric)}

    def _features(self, rows: list[dict[str, str]]) -> list[dict[str, Any]]:
        pairs = [row["text_pair"] for row in rows] if self._settings["has_pairs"] else None
        texts = [row["text"] for row in rows]
        encoded = self._tokenizer(texts, pairs, truncation=True, max_length=MAX_LENGTH)
        return [
            {
                **{name: values[index] for name, values in encoded.items()},
                "labels": self._target(row["label"]),
            }
            for index, row in enumerate(rows)
        ]

    def _target(self, label: str) -> float | int:
        return float(label) if self._is_regression else self._labels.index(label)


def read_rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def main() -> None:
    settings = json.loads(sys.argv[1]) | {"rows": 0, "max_seq_length": MAX_LENGTH}
    set_seed(settings["seed"])  # of the new head
    tokenizer = AutoTokenizer.from_pretrained(settings["init"])
    task = (Tagging if settings["task"] == "tagging" else Labels)(settings, tokenizer)
    with tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output_dir=output, seed=settings["seed"], report_to=[], save_strategy="no"
        )
        trainer = Trainer(
            model=task.model,
            args=arguments,
            train_dataset=task.train,
            data_collator=task.collator,
        )
        trainer.train()
        print(json.dumps({**task.evaluate(trainer), "steps": trainer.state.global_step}))


if __name__ == "__main__":
    main()

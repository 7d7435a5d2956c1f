"""HuggingFace's side of benchmarks/finetuning.py: the Trainer on rows of a file.

    python benchmarks/finetuning_huggingface.py SETTINGS

SETTINGS is a JSON text with the settings of a data set (`DataSet` in finetuning_data.py), `init`,
`seed`, `precision` ("float32" or "bfloat16") and `answer`, the file that a JSON object is written
to: seconds of training, milliseconds of a step after the first ten, and the metric or, for
questions, the answers. With `record`, the file for the steps that
finetuning_huggingface_recording.py keeps. Needs torch, transformers, accelerate and, for tagging,
seqeval.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from finetuning_huggingface_recording import RecordingTrainer
from finetuning_huggingface_squad import QuestionAnswering
from finetuning_huggingface_tagging import Tagging
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

_FIRST_STEPS = 10


class Texts:
    """Labels or values of texts and of pairs of texts, in TSV files without quoting, as GLUE."""

    def __init__(self, settings: dict[str, Any], tokenizer: Any):
        self._settings, self._tokenizer = settings, tokenizer
        rows = self._rows("train", settings["rows"])
        self._is_regression = settings["task"] == "regression"
        cells = [row[settings["label_column"]] for row in rows]
        self._labels = [] if self._is_regression else sorted(set(cells))
        self.train = self._features(rows)
        self.eval = self._features(self._rows("eval", 0))
        self.collator = DataCollatorWithPadding(tokenizer)
        self.model = AutoModelForSequenceClassification.from_pretrained(
            settings["init"],
            **(
                {"num_labels": 1, "problem_type": "regression"}
                if self._is_regression
                else {"num_labels": len(self._labels)}
            ),
        )

    def evaluate(self, trainer: Trainer) -> dict[str, Any]:
        """Accuracy, or Spearman's correlation."""
        found = trainer.predict(self.eval)
        if self._is_regression:
            from scipy.stats import spearmanr

            correlation = spearmanr(found.predictions[:, 0], found.label_ids).statistic
            return {"metric": float(correlation)}
        return {"metric": float(np.mean(found.predictions.argmax(-1) == found.label_ids))}

    def _rows(self, split: str, limit: int) -> list[dict[str, str]]:
        with Path(self._settings[split]).open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
        return rows[: limit or None]

    def _features(self, rows: list[dict[str, str]]) -> list[dict[str, Any]]:
        pair = self._settings["text_pair_column"]
        encoded = self._tokenizer(
            [row[self._settings["text_column"]] for row in rows],
            None if pair is None else [row[pair] for row in rows],
            truncation=True,
            max_length=self._settings["max_seq_length"],
        )
        numbers = {label: number for number, label in enumerate(self._labels)}
        cells = [row[self._settings["label_column"]] for row in rows]
        labels = [float(cell) if self._is_regression else numbers[cell] for cell in cells]
        return [
            {**{name: values[index] for name, values in encoded.items()}, "labels": label}
            for index, label in enumerate(labels)
        ]


class StepTimes(TrainerCallback):
    """When the first steps ended, and the last one."""

    def __init__(self) -> None:
        self._ends: dict[int, float] = {}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step in (_FIRST_STEPS, state.max_steps):
            self._ends[state.global_step] = time.monotonic()

    def milliseconds(self) -> float:
        """Of a step after the first ones."""
        (first_step, first), (last_step, last) = sorted(self._ends.items())
        return 1000 * (last - first) / (last_step - first_step)


TASKS: dict[str, Any] = {
    "classification": Texts,
    "regression": Texts,
    "tagging": Tagging,
    "qa": QuestionAnswering,
}


def main() -> None:
    settings = json.loads(sys.argv[1])
    set_seed(settings["seed"])
    task = TASKS[settings["task"]](settings, AutoTokenizer.from_pretrained(settings["init"]))
    steps = -(-len(task.train) // settings["batch_size"]) * settings["epochs"]
    times = StepTimes()
    record = settings.get("record")
    trainer = (RecordingTrainer if record else Trainer)(
        model=task.model,
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
            logging_strategy="steps" if record else "no",
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=task.train,
        data_collator=task.collator,
        callbacks=[times],
    )
    start = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - start
    if record:
        trainer.save_records(record, task.eval, getattr(task, "tags", []))
    # It would sort the rows of an evaluation, too, and return predictions in that order.
    trainer.args.train_sampling_strategy = "random"
    answer = {"train": seconds, "step_ms": times.milliseconds(), **task.evaluate(trainer)}
    Path(settings["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()

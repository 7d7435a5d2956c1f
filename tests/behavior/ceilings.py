"""Small rows of tasks, and the ceiling that is measured on them."""

from __future__ import annotations

import functools
import io
import json
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.registry import finetune_config, task_class
from bert_tf.tasks.running.ceiling import Ceiling, measure_ceiling

LETTERS = [*"bcdefghijklmnopq"]  # without the article, which measures of answers leave out
WORDS = [*LETTERS, "a", "the", "red", "?", ".", ",", "-"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
COLUMNS = {
    "regression": {"label_column": "number"},
    "multiple-choice": {"choices_column": ("choices",), "label_form": "number"},
    "similarity": {"loss": "cosent"},
}


@functools.cache
def tokenizer() -> WordPieceTokenizer:
    """Return the tokenizer, made by the first test: TensorFlow may not start before."""
    return WordPieceTokenizer(VOCAB, lowercase=True)


def measured_ceiling(
    folder: Path, task: str, rows: str | list[Any], name: str = "rows.jsonl", **values: Any
) -> Ceiling:
    """Measure the ceiling of rows that a task would train on.

    Args:
        folder: for the file of rows.
        task: name of the task.
        rows: content of the file; a list is written as JSON lines.
        name: of the file.
        values: keys of the config of `finetune`.
    """
    path = folder / name
    text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text)
    settings = {"train": str(path), "init": str(folder), "output": str(folder / "run")}
    settings |= {"max_seq_length": 32} | COLUMNS.get(task, {}) | values
    if task == "qa":
        settings = {"max_query_length": 8, "doc_stride": 8} | settings
    config = finetune_config({"task": task, **settings})
    made, source = task_class(task).from_training(config, Console(io.StringIO()))
    data = made.encode(source, tokenizer(), training=True)
    found = measure_ceiling(made, data, tokenizer(), fits=True)
    assert found is not None
    json.dumps(found.as_json(), allow_nan=False)
    return found


def texts_with_labels(rows: list[tuple[str, Any]], label: str = "label") -> list[dict[str, Any]]:
    """Return rows of a text and its label, in a column of this name."""
    return [{"text": text, label: value} for text, value in rows]


CONTEXT = "b c d e f g h i ."


def question(
    number: int, answer: str | None, context: str = CONTEXT, text: str | None = None
) -> dict[str, Any]:
    """Return a question that begins with the letter of a number; None is no answer."""
    found = {"question": text or f"{LETTERS[number]} ?", "context": context}
    if answer is None:
        return {**found, "answer": [], "answer_start": []}
    return {**found, "answer": answer, "answer_start": context.index(answer)}

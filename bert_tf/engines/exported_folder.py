"""What an exported folder holds for every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.base.checksums import check_sums
from bert_tf.base.json_files import read_json_object
from bert_tf.config.bert_file import TASK

SERVING_VERSION = "1"  # the folder in an export for TensorFlow Serving that has the model


def read_task(folder: str | Path) -> dict[str, Any] | None:
    """The content of a model's `task.json`, None if it has none.

    Raises:
        InputError: the file is damaged, or not the one that `SHA256SUMS` vouches for.
    """
    check_sums(Path(folder), {TASK}.__contains__)
    file = Path(folder) / TASK
    return read_json_object(file) if file.is_file() else None

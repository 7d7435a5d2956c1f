"""What an exported folder holds for every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import check_sums
from bert_tf.base.errors import InputError

TASK = "task.json"


def read_task(folder: str | Path) -> dict[str, Any] | None:
    """The content of a model's `task.json`, None if it has none.

    Raises:
        InputError: the file is damaged, or not the one that `SHA256SUMS` vouches for.
    """
    check_sums(Path(folder), {TASK}.__contains__)
    file = Path(folder) / TASK
    if not file.is_file():
        return None
    try:
        task = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file}: damaged ({error}); export the model again") from None
    if not isinstance(task, dict):
        raise InputError(f"{file}: damaged; expected a JSON object; export the model again")
    return task

"""Reads the metrics.jsonl of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError
from bert_tf.training.tracking.tracker import SPLITS


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl; [] where there is none. A half-written last line is left out.

    Raises:
        InputError: another line is not a JSON object with `step` and `split`.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    metrics = []
    for number, text in enumerate(lines[:-1], start=1):  # what follows the last newline is partial
        try:
            line = json.loads(text)
            if line["split"] not in SPLITS or not isinstance(line["step"], int):
                raise ValueError("unknown split or step")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}:{number}: not a line of metrics ({error}); "
                "delete the line, or start again with --overwrite"
            ) from None
        metrics.append(line)
    return metrics

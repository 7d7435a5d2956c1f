"""What the jobs on labelled rows report alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bert_tf.config.errors import UsageError
from bert_tf.data.atomic import replacing_file
from bert_tf.tasks.task import LabelledRows


def refuse_missing_inputs(paths: Mapping[str, str | None]) -> list[str]:
    """The paths that were given, all of which exist.

    Args:
        paths: path by command-line flag, None where the flag was left out.

    Raises:
        UsageError: there is no such file or folder.
    """
    for flag, path in paths.items():
        if path is not None and not Path(path).exists():
            raise UsageError(f"{flag} {path}: no such file or folder; check the path")
    return [path for path in paths.values() if path is not None]


def row_counts(source: LabelledRows) -> dict[str, int]:
    """Rows of a file: read, usable, rejected."""
    rejected = len(source.rejects)
    return {
        "rows_in": len(source) + rejected,
        "rows_out": len(source),
        "rows_rejected": rejected,
    }


def write_predictions(path: Path, predictions: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSON object a row."""
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8") as stream:
        for prediction in predictions:
            stream.write(json.dumps(prediction, ensure_ascii=False) + "\n")

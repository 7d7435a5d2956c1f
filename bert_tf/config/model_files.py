"""Where the files of a model are, and the names of those that say what the model is."""

from __future__ import annotations

from pathlib import Path

CONFIG = "config.json"
TASK = "task.json"
GOOGLE_CONFIG = "bert_config.json"


def model_folder(path: str | Path) -> Path:
    """Where the files of a model are: in the `best/` of a run, else in the folder itself."""
    best = Path(path) / "best"
    return best if best.is_dir() else Path(path)

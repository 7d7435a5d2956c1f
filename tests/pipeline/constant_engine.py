"""An engine that finds every text equally good: all that a new engine must have."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bert_tf.engines.engine import CallingEngine, Engine
from bert_tf.engines.registry import EngineEntry


class ConstantEngine(CallingEngine):
    """Predicts one label with one score."""

    input_names = ("text",)

    def __init__(self, folder: Path):
        self._label, score = (folder / "constant.txt").read_text().split()
        self._score = float(score)
        self.path = folder

    def call(self, inputs, batch_tokens, on_tokens):
        """See `CallingEngine.call`."""
        rows = len(inputs["text"])
        return {
            "predicted_label": np.full(rows, self._label, object),
            "predicted_score": np.full(rows, self._score, np.float32),
        }


def load(folder: Path, *, threads: int | None, precision: str) -> Engine:
    """See `Engine`."""
    return ConstantEngine(folder)


CONSTANT = EngineEntry(
    name="constant", module="constant_engine", packages=("numpy",), model_file="constant.txt"
)

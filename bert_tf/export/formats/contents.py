"""What the formats of checkpoints and presets are written from."""

from __future__ import annotations

from typing import Any

from bert_tf.export.loading import TrainedModel
from bert_tf.weights.model_directory import model_tensors


def model_contents(trained: TrainedModel) -> dict[str, Any]:
    """Config, vocabulary, casing and tensors, by the parameters of the writers in `weights`."""
    directory = trained.directory
    return {
        "config": directory.config,
        "vocab": directory.vocab,
        "lowercase": directory.lowercase,
        "tensors": model_tensors(trained.model),
    }

"""A tiny model of random weights that HuggingFace's pipeline has filled masks with."""

from __future__ import annotations

from pathlib import Path

import pytest

from bert_tf.config.section import build_section
from bert_tf.export.loading import TrainedModel, directory_for_task, load_trained_model
from bert_tf.tasks.fill_mask.declaration import FillMaskConfig
from bert_tf.weights.model_directory import read_model_directory

FOLDER = Path(__file__).parents[3] / "golden" / "fill_mask"


@pytest.fixture(scope="session")
def folder() -> Path:
    """Return the model as HuggingFace saved it, and `expected.json`."""
    return FOLDER


@pytest.fixture(scope="session")
def trained() -> TrainedModel:
    """Return the model with the task, four candidates for each mask."""
    values = {"run": str(FOLDER), "output": "exported", "task": "fill-mask", "top_k": 4}
    config = build_section(FillMaskConfig, values)
    return load_trained_model(directory_for_task(read_model_directory(FOLDER), config))

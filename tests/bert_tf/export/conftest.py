"""Models with random weights, large enough that answers and labels differ from text to text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from behavior.exported_models import KINDS, exported_kind

from bert_tf.engines.saved_model import SavedModelEngine
from bert_tf.export.loading import TrainedModel, load_trained_model
from bert_tf.weights.model_directory import read_model_directory

Exported = tuple[TrainedModel, SavedModelEngine]


@pytest.fixture(scope="session")
def export(tmp_path_factory) -> Callable[[str], Path]:
    """Return the folder of a model of one of `KINDS` and the SavedModel that it is exported to."""
    return lambda kind: exported_kind(tmp_path_factory, kind)


def loaded(folder: Path) -> Exported:
    return load_trained_model(read_model_directory(folder)), SavedModelEngine(folder)


@pytest.fixture(scope="session")
def classifier(export) -> Exported:
    return loaded(export("classifier"))


@pytest.fixture(scope="session")
def answerer(export) -> Exported:
    return loaded(export("answerer"))


@pytest.fixture(scope="session")
def embedder(export) -> Exported:
    return loaded(export("embedder"))


@pytest.fixture(scope="session")
def comparer(export) -> Exported:
    return loaded(export("comparer"))


@pytest.fixture(scope="session")
def all_kinds(export) -> dict[str, Path]:
    """Return the folder of a model of every task, and of one without."""
    return {kind: export(kind) for kind in KINDS}

"""Models with random weights, large enough that answers and labels differ from text to text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest

from bert_tf.config.bert import BertConfig
from bert_tf.engines.saved_model import SavedModelEngine
from bert_tf.export.loading import TrainedModel, load_trained_model
from bert_tf.export.saved_model import write_saved_model
from bert_tf.models.encoder import BertEncoder
from bert_tf.tasks.registry import served_task_from_settings
from bert_tf.weights.model_directory import read_model_directory, write_model_directory

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *("the", "river", "runs", "north", "of", "city", "where", "is", "it", ".", "?", ","),
]
CLASSIFICATION = {
    "task": "classification",
    "labels": ["no", "yes, or so", "Łódź"],
    "columns": {"text": "text", "text_pair": "reply", "label": "label"},
    "max_seq_length": 24,
}
QUESTION_ANSWERING = {
    "task": "qa",
    "columns": {
        "question": "question",
        "context": "context",
        "answer": "answer",
        "answer_start": "answer_start",
    },
    "max_seq_length": 24,
    "doc_stride": 5,
    "max_query_length": 6,
    "max_answer_length": 4,
    "n_best_size": 5,
    "null_score_diff_threshold": 0.0,
    "may_be_unanswerable": True,
    "sentence_margin": 1.0,
}

MULTIPLE_CHOICE = {
    "task": "multiple-choice",
    "columns": {
        "context": "context",
        "question": "question",
        "choices": ["choices"],
        "label": "label",
    },
    "label_form": "number",
    "max_seq_length": 24,
}
MULTI_LABEL = {
    "task": "multilabel",
    "labels": ["blame", "film, or play", "praise"],
    "label_separator": "|",
    "thresholds": "0.5",
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "max_seq_length": 24,
    "long_texts": "windows",
}
REGRESSION = {
    "task": "regression",
    "target_scaling": "standard",
    "target_mean": 2.5,
    "target_scale": 1.5,
    "columns": {"text": "text", "text_pair": "reply", "label": "label"},
    "max_seq_length": 24,
}
TAGGING = {
    "task": "tagging",
    "columns": {"text": "text", "tokens": "tokens", "tags": "tags", "entities": "entities"},
    "scheme": "bio",
    "labels": ["O", "B-city", "I-city", "B-river"],
    "max_seq_length": 24,
    "window_stride": 8,
}
SIMILARITY = {
    "task": "similarity",
    "columns": {"text": "anchor", "text_pair": "positive", "negative": [], "label": None},
    "loss": "multiple-negatives-ranking",
    "scale": 20.0,
    "triplet_margin": 5.0,
    "triplet_distance": "euclidean",
    "pooling": "max",
    "normalize": True,
    "max_seq_length": 16,
}
FILL_MASK = {"task": "fill-mask", "columns": {"text": "text"}, "max_seq_length": 24, "top_k": 3}

Exported = tuple[TrainedModel, SavedModelEngine]


@pytest.fixture(scope="session")
def write_model(tmp_path_factory) -> Callable[[dict[str, Any] | None], Path]:
    """Writes a model directory for a task's settings, an encoder for None."""

    def write(settings: dict[str, Any] | None) -> Path:
        config = BertConfig(
            vocab_size=len(VOCAB),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=32,
            initializer_range=0.7,
        )
        keras.utils.set_random_seed(3)
        if settings is None:
            model = BertEncoder(config, dtype="float32")
        else:
            model = served_task_from_settings(settings, "test").build_model(
                config, policy="float32"
            )
        model.build_weights()
        path = tmp_path_factory.mktemp("trained") / "model"
        write_model_directory(path, model, vocab=VOCAB, lowercase=True, task=settings)
        return path

    return write


@pytest.fixture(scope="session")
def export(write_model) -> Callable[[dict[str, Any] | None], Exported]:
    """Writes a model and exports it beside its other files."""

    def make(settings: dict[str, Any] | None) -> Exported:
        path = write_model(settings)
        trained = load_trained_model(read_model_directory(path))
        return trained, write_saved_model(trained, path)

    return make


@pytest.fixture(scope="session")
def classifier(export) -> Exported:
    return export(CLASSIFICATION)


@pytest.fixture(scope="session")
def answerer(export) -> Exported:
    return export(QUESTION_ANSWERING)


@pytest.fixture(scope="session")
def embedder(export) -> Exported:
    return export(None)


@pytest.fixture(scope="session")
def chooser(export) -> Exported:
    return export(MULTIPLE_CHOICE)


@pytest.fixture(scope="session")
def filler(export) -> Exported:
    return export(FILL_MASK)


@pytest.fixture(scope="session")
def multi_labeler(export) -> Exported:
    return export(MULTI_LABEL)


@pytest.fixture(scope="session")
def regressor(export) -> Exported:
    return export(REGRESSION)


@pytest.fixture(scope="session")
def tagger(export) -> Exported:
    return export(TAGGING)


@pytest.fixture(scope="session")
def comparer(export) -> Exported:
    return export(SIMILARITY)


@pytest.fixture(scope="session")
def all_kinds(request) -> dict[str, Exported]:
    """A model of every task, and one without."""
    kinds = (
        *("classifier", "multi_labeler", "regressor", "tagger", "answerer", "chooser", "filler"),
        *("comparer", "embedder"),
    )
    return {kind: request.getfixturevalue(kind) for kind in kinds}

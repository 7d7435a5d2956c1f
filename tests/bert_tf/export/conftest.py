"""Models with random weights, large enough that answers and labels differ from text to text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
from behavior.made_once import made_once

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

KINDS: dict[str, dict[str, Any] | None] = {
    "classifier": CLASSIFICATION,
    "multi_labeler": MULTI_LABEL,
    "regressor": REGRESSION,
    "tagger": TAGGING,
    "answerer": QUESTION_ANSWERING,
    "chooser": MULTIPLE_CHOICE,
    "filler": FILL_MASK,
    "comparer": SIMILARITY,
    "embedder": None,
}

Exported = tuple[TrainedModel, SavedModelEngine]


def write_trained(path: Path, settings: dict[str, Any] | None) -> None:
    """Writes a model directory for a task's settings, an encoder for None."""
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
        model = served_task_from_settings(settings, "test").build_model(config, policy="float32")
    model.build_weights()
    write_model_directory(path, model, vocab=VOCAB, lowercase=True, task=settings)


@pytest.fixture(scope="session")
def write_model(tmp_path_factory) -> Callable[[dict[str, Any] | None], Path]:
    """Writes a model directory for a task's settings, an encoder for None."""

    def write(settings: dict[str, Any] | None) -> Path:
        path = tmp_path_factory.mktemp("trained") / "model"
        write_trained(path, settings)
        return path

    return write


@pytest.fixture(scope="session")
def export(tmp_path_factory) -> Callable[[str], Path]:
    """The folder of a model of one of `KINDS` and the SavedModel that it is exported to."""

    def write(path: Path, kind: str) -> None:
        write_trained(path, KINDS[kind])
        write_saved_model(load_trained_model(read_model_directory(path)), path)

    return lambda kind: made_once(
        tmp_path_factory, f"export-{kind}", lambda path: write(path, kind)
    )


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
    """The folder of a model of every task, and of one without."""
    return {kind: export(kind) for kind in KINDS}

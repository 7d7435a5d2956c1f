"""SavedModels of small models of every task, which the tests of several packages read."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from behavior.made_once import made_once
from behavior.small_models import write_model

from bert_tf.export import saved_model
from bert_tf.export.loading import load_trained_model
from bert_tf.weights.model_directory import read_model_directory

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *("the", "river", "runs", "north", "of", "city", "where", "is", "it", ".", "?", ","),
    *("was", "film", "good", "bad", "very", "red", "and"),
]
CLASSIFICATION = {
    "task": "classification",
    "labels": ["no", "yes, or so", "Łódź"],
    "columns": {"text": "text", "text_pair": "reply", "label": "label"},
    "max_seq_length": 23,  # not what lengths are rounded up to
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
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "max_seq_length": 24,
}
TAGGING = {
    "task": "tagging",
    "columns": {"text": "text", "tokens": "tokens", "tags": "tags", "entities": "entities"},
    "scheme": "bio",
    "labels": ["O", "B-city", "I-city", 'B-"river"'],
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
LIKELIHOOD = {
    "task": "likelihood",
    "columns": {"text": "text", "text_pair": "other"},
    "max_seq_length": 12,
}
NEXT_SENTENCE = {
    "task": "next-sentence",
    "columns": {"text": "text", "text_pair": "text_pair"},
    "max_seq_length": 24,
}

KINDS: dict[str, dict[str, Any] | None] = {
    "classifier": CLASSIFICATION,
    "multi_labeler": MULTI_LABEL,
    "regressor": REGRESSION,
    "tagger": TAGGING,
    "answerer": QUESTION_ANSWERING,
    "chooser": MULTIPLE_CHOICE,
    "filler": FILL_MASK,
    "judge": LIKELIHOOD,
    "follower": NEXT_SENTENCE,
    "comparer": SIMILARITY,
    "embedder": None,
}

# Further settings, of models of two layers.
VARIANTS: dict[str, dict[str, Any]] = {
    "windows": {
        **CLASSIFICATION,
        "temperature": 0.7,
        "columns": {"text": "text", "text_pair": None, "label": "label"},
        "max_seq_length": 8,
        "long_texts": "windows",
    },
    "head_tail": {
        **MULTI_LABEL,
        "thresholds": "per-label",
        "decision_thresholds": [0.5, 0.4, 0.6],
        "long_texts": "head-tail",
    },
    "word_filler": {
        **FILL_MASK,
        "candidates": ["good", "red film", "blues", "bad", "reds", "very very very good"],
    },
    "mean_comparer": {**SIMILARITY, "pooling": "mean"},
    "cls_comparer": {**SIMILARITY, "pooling": "cls", "normalize": False},
}


def write_kind(path: Path, kind: str) -> Path:
    """Write a model whose answers differ from text to text, with no more positions than needed."""
    settings = {**KINDS, **VARIANTS}[kind]
    layers = 2 if kind in VARIANTS else 1
    return write_model(
        path,
        settings,
        vocab=VOCAB,
        seed=3,
        num_hidden_layers=layers,
        max_position_embeddings=32 if settings is None else settings["max_seq_length"],
        initializer_range=0.7,
    )


def equal(*_: object) -> float:
    """Return the difference of a graph that is not compared with its model."""
    return 0.0


def export_kind(path: Path, kind: str) -> None:
    """Write a model and its SavedModel into a new folder."""
    trained = load_trained_model(read_model_directory(write_kind(path, kind)))
    # That takes half of the time; the answers of each kind are compared in the tests of engines.
    with mock.patch.object(saved_model, "largest_difference", equal):
        saved_model.write_saved_model(trained, path)


def exported_kind(factory: pytest.TempPathFactory, kind: str) -> Path:
    """Return the folder of a model and of its SavedModel, which no test may change."""
    return made_once(factory, f"export-{kind}", lambda path: export_kind(path, kind))

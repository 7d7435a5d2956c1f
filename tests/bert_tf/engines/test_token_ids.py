"""Engines whose graph takes token ids: the rows that TensorFlow's engine predicts."""

from __future__ import annotations

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import safetensors.numpy
from behavior.engines import check_engine

from bert_tf.config.bert import BertConfig
from bert_tf.engines.registry import ENGINES, usable_engines
from bert_tf.export.formats.saved_model import write_saved_model
from bert_tf.export.loading import load_trained_model
from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.registry import declared_task, served_task_from_settings
from bert_tf.weights.model_directory import read_model_directory, write_model_directory

VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("the", "a", "it", "is", "was", "film", "city", "good", "bad", "very", "red", "and", "##s"),
]
TEXTS = [
    "the film was good",
    "",
    "bad",
    "a city of red and blues " * 9,
    "Straße 東京",
    "is it? it is",
]
REPLIES = ["it is", "", "the city", "very good " * 20, "", "it was"]
LABELS = ["no", "yes, or so", "Łódź"]
COLUMNS = {"text": "text", "text_pair": None, "label": "label"}
TASKS = {
    "classification": {
        "task": "classification",
        "labels": LABELS,
        "temperature": 0.7,
        "columns": COLUMNS,
        "max_seq_length": 24,
    },
    "pairs": {
        "task": "classification",
        "labels": LABELS,
        "columns": {**COLUMNS, "text_pair": "reply"},
        "max_seq_length": 16,
    },
    "windows": {
        "task": "classification",
        "labels": LABELS,
        "columns": COLUMNS,
        "max_seq_length": 8,
        "long_texts": "windows",
    },
    "multilabel": {
        "task": "multilabel",
        "labels": LABELS,
        "label_separator": ",",
        "thresholds": "per-label",
        "decision_thresholds": [0.5, 0.4, 0.6],
        "columns": COLUMNS,
        "max_seq_length": 24,
        "long_texts": "head-tail",
    },
    "regression": {
        "task": "regression",
        "target_scaling": "standard",
        "target_mean": 3.5,
        "target_scale": 2.0,
        "columns": COLUMNS,
        "max_seq_length": 24,
    },
}
IDS_ENGINES = [name for name, entry in ENGINES.items() if entry.takes_token_ids]


@pytest.fixture(scope="module", params=TASKS)
def exported(request, tmp_path_factory):
    """A SavedModel of a small model with random weights."""
    return export(TASKS[request.param], tmp_path_factory.mktemp(request.param) / "model")


def export(settings, path):
    task = served_task_from_settings(settings, "model")
    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    keras.utils.set_random_seed(1)
    model = task.build_model(config, policy="float32")
    model.build_weights()
    write_model_directory(path, model, vocab=VOCAB, lowercase=True, task=settings)
    write_saved_model(load_trained_model(read_model_directory(path)), path)
    return path


def columns_of(engine):
    return dict(zip(engine.input_names, (TEXTS, REPLIES), strict=False))


def entry_of(name):
    entry = ENGINES[name]
    for package in entry.packages:
        pytest.importorskip(package, reason="an optional package")
    return entry


@pytest.mark.slow  # exports models
@pytest.mark.parametrize("name", IDS_ENGINES)
def test_rows_are_those_of_the_saved_model(exported, name):
    entry = entry_of(name)
    assert entry in usable_engines("auto", exported)
    engine, graph = entry.load(exported), ENGINES["tensorflow"].load(exported)
    assert engine.input_names == graph.input_names
    columns = columns_of(engine)
    found, expected = engine.predict(columns), graph.predict(columns)
    assert found.keys() == expected.keys()
    declared = declared_task(json.loads((exported / "task.json").read_text()), "model")
    ours = prediction_rows(declared.predictions, found)
    for row, theirs in zip(ours, prediction_rows(declared.predictions, expected), strict=True):
        for name, value in row.items():
            assert value == theirs[name] or value == pytest.approx(theirs[name], abs=2e-6), name
    for output, values in expected.items():
        if values.dtype != object:
            np.testing.assert_allclose(found[output], values, rtol=1e-5, atol=1e-5)


@pytest.mark.slow  # exports models
@pytest.mark.parametrize("name", IDS_ENGINES)
def test_engine(exported, name, tmp_path):
    entry = entry_of(name)
    diverged = tmp_path / "diverged"
    diverged.mkdir()
    for file in exported.iterdir():
        if file.is_file() and file.name != "SHA256SUMS":
            (diverged / file.name).write_bytes(file.read_bytes())
    weights = safetensors.numpy.load_file(diverged / "model.safetensors")
    weights["classifier.bias"] = np.full_like(weights["classifier.bias"], np.nan)
    safetensors.numpy.save_file(weights, diverged / "model.safetensors")
    engine = entry.load(exported)
    check_engine(engine, columns_of(engine), diverged=entry.load(diverged))


@pytest.mark.slow  # starts a process
@pytest.mark.parametrize("name", IDS_ENGINES)
def test_no_tensorflow_is_imported(tmp_path, name):
    entry_of(name)
    path = export(TASKS["classification"], tmp_path / "model")
    code = (
        "import sys\n"
        "from bert_tf.engines.registry import resolve_engine\n"
        f"engine = resolve_engine({name!r}, sys.argv[1]).load(sys.argv[1])\n"
        "assert len(engine.predict({'text': ['a', 'b']})['predicted_label']) == 2\n"
        "heavy = {'tensorflow', 'keras', 'apache_beam', 'numba', 'scipy'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""Probe rows: equal scores pass, others end the job with processor and engine in the message."""

import json
import logging

import numpy as np
import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.registries import FLOAT32, INT8
from bert_tf.engines.probes import (
    NUMBER,
    PROBES,
    check_probes,
    largest_difference,
    probe_texts,
    write_probes,
)

VOCAB = ["[PAD]", "[UNK]", "##s", "the", "river", "runs", "north", "."]
ROWS = {"text": probe_texts(VOCAB)}
SCORES = {
    "probabilities": np.linspace(0, 1, 2 * NUMBER).reshape(NUMBER, 2),
    "predicted_label": np.array(["a"] * NUMBER, object),
}


class Engine:
    """Adds a number to the scores of the export."""

    def __init__(self, change: float):
        self._change = change

    def predict(self, rows, **_):
        assert rows == ROWS
        return {**SCORES, "probabilities": SCORES["probabilities"] + self._change}


def test_texts_are_made_of_the_vocabulary_and_the_same_every_time():
    texts = probe_texts(VOCAB)
    assert len(texts) == NUMBER
    assert texts == probe_texts(VOCAB)
    assert {word for text in texts for word in text.split()} == {"the", "river", "runs", "north"}
    lengths = [len(text.split()) for text in texts]
    assert (min(lengths), max(lengths)) == (1, 48)


def test_an_engine_with_the_scores_of_the_export_passes(tmp_path):
    assert write_probes(tmp_path, ROWS, SCORES, FLOAT32)
    check_probes(tmp_path, Engine(1e-5), "e", FLOAT32)
    check_probes(tmp_path, Engine(0.5), "e", INT8)  # without scores of its own


def test_another_one_is_named_with_the_processor(tmp_path):
    write_probes(tmp_path, ROWS, SCORES, FLOAT32)
    with pytest.raises(UsageError, match=r"openvino in float32 differs by 0\.1 .* cores, .*--al"):
        check_probes(tmp_path, Engine(0.1), "openvino", FLOAT32)


def test_with_allowance_it_is_a_warning(tmp_path, caplog):
    write_probes(tmp_path, ROWS, SCORES, FLOAT32)
    with caplog.at_level(logging.WARNING):
        check_probes(tmp_path, Engine(0.1), "openvino", FLOAT32, allows_drift=True)
    assert "differs by 0.1" in caplog.text


def test_scores_of_int8_are_those_of_its_own_graph(tmp_path):
    write_probes(tmp_path, ROWS, SCORES, FLOAT32)
    write_probes(tmp_path, ROWS, Engine(0.2).predict(ROWS), INT8)
    check_probes(tmp_path, Engine(0.21), "onnxruntime", INT8)
    check_probes(tmp_path, Engine(0.0), "onnxruntime", FLOAT32)
    with pytest.raises(UsageError, match="onnxruntime in int8 differs by 0.2"):
        check_probes(tmp_path, Engine(0.0), "onnxruntime", INT8)


def test_models_of_earlier_releases_and_of_words_alone_pass(tmp_path):
    check_probes(tmp_path, Engine(9.0), "e", FLOAT32)
    assert not write_probes(tmp_path, ROWS, {"predicted_tags": np.array([[]], object)}, FLOAT32)
    assert not (tmp_path / PROBES).exists()


def test_damaged_ones_are_one_line(tmp_path):
    (tmp_path / PROBES).write_text(json.dumps({"rows": ROWS}))
    with pytest.raises(InputError, match="damaged"):
        check_probes(tmp_path, Engine(0.0), "e", FLOAT32)


def test_missing_outputs_and_other_shapes_differ():
    assert largest_difference({"a": [1.0]}, {}) == float("inf")
    assert largest_difference({"a": [1.0]}, {"a": np.ones(2)}) == float("inf")
    assert largest_difference({"a": [1.0]}, {"a": np.array([0.75])}) == 0.25
    assert np.isnan(largest_difference({"a": [1.0]}, {"a": np.array([np.nan])}))


def test_differences_are_relative_to_large_numbers():
    assert largest_difference({"a": [200_000.0]}, {"a": np.array([200_000.1])}) < 1e-6

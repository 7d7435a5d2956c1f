"""Checkpoints for google-research/bert: names and shapes as its own code has them, values kept."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.errors import InputError, UsageError
from bert_tf.weights.google_checkpoint import google_name, huggingface_name, write_google_checkpoint
from bert_tf.weights.import_weights import read_source
from bert_tf.weights.model_directory import read_model_directory

GOLDEN = Path(__file__).parents[2] / "golden"
REFERENCE = json.loads((GOLDEN / "google_variables.json").read_text())
CASES = ("pretraining", "classification", "question_answering")


def write(name, folder, **changes):
    directory = read_model_directory(GOLDEN / "models" / name)
    config = dataclasses.replace(directory.config, **changes)
    notes = write_google_checkpoint(
        folder, config=config, vocab=directory.vocab, lowercase=False, tensors=directory.tensors
    )
    return directory, notes


@pytest.mark.parametrize("name", CASES)
def test_variables_are_those_of_the_references_graph(name, tmp_path):
    directory, _ = write(name, tmp_path)
    reader = tf.train.load_checkpoint(str(tmp_path / "bert_model.ckpt"))
    shapes = reader.get_variable_to_shape_map()
    expected = dict(REFERENCE[name])
    if name == "question_answering":  # HuggingFace's has no pooler, which the script leaves unused
        expected = {key: shape for key, shape in expected.items() if "pooler" not in key}
    assert shapes == expected
    assert {reader.get_tensor(key).dtype for key in shapes} == {np.dtype(np.float32)}
    kernel = reader.get_tensor("bert/encoder/layer_1/intermediate/dense/kernel")
    weight = directory.tensors["bert.encoder.layer.1.intermediate.dense.weight"]
    np.testing.assert_array_equal(kernel, weight.T)


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_read_back(name, tmp_path):
    folder = tmp_path / f"[{name}]"  # TensorFlow takes such a path for a pattern
    directory, _ = write(name, folder)
    again = read_source(folder)
    assert again.config == directory.config.replace(hidden_act="gelu_new")
    assert (again.vocab, again.lowercase) == (directory.vocab, False)
    assert again.tensors.keys() == directory.tensors.keys()
    for key, value in directory.tensors.items():
        np.testing.assert_array_equal(again.tensors[key], value)


def read_tensors(folder):
    return dict(read_source(folder).tensors)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["index", "data-00000-of-00001"])
def test_damage_is_named(ending, tmp_path):
    """A file that is read in spite of a flipped bit has the values that were written."""
    write("classification", tmp_path)
    whole = read_tensors(tmp_path)
    path = tmp_path / f"bert_model.ckpt.{ending}"
    content = path.read_bytes()
    for bit in np.random.default_rng(1).choice(8 * len(content), 25):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped[: bit // 8] if bit % 4 == 0 else flipped)
        try:
            read = read_tensors(tmp_path)
        except (InputError, UsageError) as error:
            assert "\n" not in str(error)
            continue
        for name, value in whole.items():
            np.testing.assert_array_equal(read[name], value)


@pytest.mark.parametrize("name", CASES)
def test_names_go_both_ways(name):
    tensors = read_model_directory(GOLDEN / "models" / name).tensors
    assert [huggingface_name(google_name(tensor)) for tensor in tensors] == list(tensors)


@pytest.mark.parametrize(
    ("changes", "activation", "said"),
    [
        ({"hidden_act": "gelu_new"}, "gelu", []),
        ({"hidden_act": "gelu_pytorch_tanh"}, "gelu", []),
        ({"hidden_act": "relu"}, "relu", []),
        ({"hidden_act": "gelu"}, "gelu", ["exact GELU"]),
        ({"hidden_act": "gelu", "layer_norm_eps": 1e-6}, "gelu", ["exact GELU", "is 1e-06"]),
    ],
)
def test_what_the_reference_computes_otherwise_is_reported(changes, activation, said, tmp_path):
    _, notes = write("classification", tmp_path, **changes)
    assert len(notes) == len(said)
    assert all(part in note for part, note in zip(said, notes, strict=True))
    document = json.loads((tmp_path / "bert_config.json").read_text())
    assert document["hidden_act"] == activation
    assert set(document) == set(REFERENCE["config"])

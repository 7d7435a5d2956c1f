"""Vectors of a model that says how they are made, in TensorFlow's graph and in ONNX."""

import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.export.graphs import trained_graph
from bert_tf.export.loading import load_trained_model
from bert_tf.export.saved_model import reference_vectors, text_module
from bert_tf.weights.graph_names import NAMES
from bert_tf.weights.model_directory import read_model_directory
from bert_tf.weights.sentence_transformers import write_recipe

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
TEXTS = ["w1 w2 w3", "W4 w5 w6 w7 w8 w9", ""]


@pytest.fixture
def trained_with(tmp_path):
    def make(name="encoder", **recipe):
        shutil.copytree(GOLDEN / name, tmp_path / "model")
        write_recipe(tmp_path / "model", EmbeddingRecipe(max_seq_length=6, **recipe), hidden_size=8)
        return load_trained_model(read_model_directory(tmp_path / "model"))

    return make


def outputs(trained, texts):
    got = text_module(trained).predict({"text": tf.constant(texts)}, tf.constant(64))
    return {name: value.numpy() for name, value in got.items()}


def pooled(states, mask, pooling):
    """NumPy's own words for each pooling, a text at a time."""
    tokens = [row[kept == 1] for row, kept in zip(states, mask, strict=True)]
    kinds = {"mean": lambda row: row.mean(0), "max": lambda row: row.max(0), "cls": lambda r: r[0]}
    return np.array([kinds[pooling](row) for row in tokens])


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("normalize", [True, False])
def test_every_graph_makes_the_vectors_of_the_recipe(trained_with, pooling, normalize):
    trained = trained_with(pooling=pooling, normalize=normalize)
    ids = np.array([[2, 7, 8, 9, 3, 0], [2, 9, 3, 0, 0, 0]])
    mask = (ids > 0).astype(np.int32)
    batch = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": np.zeros_like(ids)}
    got = text_module(trained).head_outputs({k: tf.constant(v) for k, v in batch.items()})
    wanted = pooled(got["sequence_output"].numpy(), mask, pooling)
    if normalize:
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(got["embedding"], wanted, atol=1e-6)
    session = onnxruntime.InferenceSession(trained_graph(trained).SerializeToString())
    inputs = {NAMES[name]: value.astype(np.int64) for name, value in batch.items()}
    (of_onnx,) = session.run(["embedding"], inputs)
    np.testing.assert_allclose(of_onnx, wanted, atol=1e-5)


@pytest.mark.slow
def test_texts_are_cut_lower_cased_and_prompted_as_the_recipe_says(trained_with):
    trained = trained_with(
        lowercase_texts=True, prompts={"document": "W1 ", "query": "w2 "}, default_prompt="document"
    )
    got = outputs(trained, TEXTS)["embedding"]
    cut = ["w1 w1 w2 w3", "w1 w4 w5 w6", "w1"]  # with [CLS] and [SEP] six tokens at most
    np.testing.assert_allclose(
        got, outputs(trained_without(trained), cut)["mean_embedding"], atol=1e-6
    )


@pytest.mark.slow
def test_a_nul_ends_no_text_that_is_lower_cased(trained_with):
    trained = trained_with(lowercase_texts=True)
    texts = ["W1\0 W2 w3", "\0w4", "w5\0w6"]
    plain = ["w1 w2 w3", "w4", "w5w6"]  # as BERT's rules drop it
    got = outputs(trained, texts)["embedding"]
    np.testing.assert_allclose(got, outputs(trained, plain)["embedding"], atol=1e-6)
    np.testing.assert_allclose(got, reference_vectors(trained, texts)["embedding"], atol=1e-5)


def trained_without(trained):
    """Return the same model where nothing says how vectors are made."""
    folder = trained.directory.path
    (folder / "modules.json").unlink()
    return load_trained_model(read_model_directory(folder))


@pytest.mark.slow
def test_vectors_need_no_pooler(trained_with):
    trained = trained_with("masked_lm", normalize=True)
    got = outputs(trained, TEXTS)
    assert got.keys() == {"mean_embedding", "embedding"}
    np.testing.assert_allclose(np.linalg.norm(got["embedding"], axis=1), 1, atol=1e-5)

"""Likelihoods and next sentences equal those that HuggingFace's models give for 200 sentences."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest

from bert_tf.config.bert import BertConfig
from bert_tf.config.section import build_section
from bert_tf.export.loading import directory_for_task, load_trained_model
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.tasks.registry import pretrained_tasks
from bert_tf.weights.model_directory import read_model_directory, write_model_directory

PYTHON = os.environ.get("BERT_PARITY_PYTHON")
SCRIPT = Path(__file__).with_name("pseudo_likelihoods.py")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "?", "'"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *("the", "cat", "cats", "sleep", "##ing", "never", "every", "river", "runs", "north"),
]
WORDS = ["the", "cat", "cats", "sleeps", "sleeping", "never", "Every", "river", "runs", "zoo", "?"]
SENTENCES = 200
TOLERANCE = 1e-5  # of a log-probability per token, in nats


def sentences(seed):
    generator = np.random.default_rng(seed)
    return [
        " ".join(generator.choice(WORDS, generator.integers(1, 13))) + "." for _ in range(SENTENCES)
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a folder of a pretrained model of random weights, both heads in it."""
    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    keras.utils.set_random_seed(7)
    pretrained = BertPretrainingModel(config, dtype="float32")
    pretrained.build_weights()
    folder = tmp_path_factory.mktemp("pretrained") / "model"
    write_model_directory(folder, pretrained, vocab=VOCAB, lowercase=True, task=None)
    return folder


@pytest.fixture(scope="module")
def theirs(model, tmp_path_factory):
    if PYTHON is None:
        pytest.skip("BERT_PARITY_PYTHON is not set: `make parity` names one with the library")
    folder = tmp_path_factory.mktemp("theirs")
    texts = {"texts": sentences(1), "pairs": sentences(2)}
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    command = [PYTHON, str(SCRIPT), str(model), str(folder / "texts.json"), str(folder / "o.npz")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "o.npz")


def predictions(model, task, texts):
    values = {"run": str(model), "output": "out", "task": task}
    config = build_section(pretrained_tasks()[task].options, values)
    trained = load_trained_model(directory_for_task(read_model_directory(model), config))
    module = trained.task.serving_module(trained.model, trained.tokenizer)
    rows = {name: keras.ops.convert_to_tensor(texts[name], "string") for name in module.inputs()}
    graph = module.signatures()["batched"]
    found = graph(**rows, batch_tokens=keras.ops.convert_to_tensor(512, "int32"))
    return {name: values.numpy() for name, values in found.items()}


def test_likelihoods_equal_huggingface(model, theirs):
    found = predictions(model, "likelihood", {"text": sentences(1)})
    np.testing.assert_array_equal(found["predicted_token_count"], theirs["token_count"])
    ours = found["predicted_log_likelihood"].astype(np.float64)
    counts = theirs["token_count"]
    np.testing.assert_allclose(
        ours / counts, theirs["log_likelihood"] / counts, rtol=0, atol=TOLERANCE
    )
    np.testing.assert_allclose(ours, theirs["log_likelihood"], rtol=TOLERANCE)


def test_next_sentences_equal_huggingface(model, theirs):
    texts = {"text": sentences(1), "text_pair": sentences(2)}
    found = predictions(model, "next-sentence", texts)
    np.testing.assert_allclose(found["predicted_score"], theirs["follows"], rtol=0, atol=TOLERANCE)

"""A vocabulary and a model small enough to learn a few rows by heart in seconds."""

from __future__ import annotations

import functools
import io
from pathlib import Path

import keras
import pytest

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.encoder import BertEncoder
from bert_tf.tasks.registry import finetune_config
from bert_tf.weights.model_directory import write_model_directory
from pipeline.cli.main import main

WORDS = [
    *("good", "bad", "fine", "film", "a", "the", "was", "it", "is", "in", "not", "very", "of"),
    *("red", "blue", "green", "city", "china", "peru", "france", "capital", "paris", "lima"),
    *("where", "what", "shanghai", "?", ".", ","),
]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> Path:
    """Return a model directory with random weights, no dropout, 64 positions."""
    path = tmp_path_factory.mktemp("small") / "model"
    keras.utils.set_random_seed(11)
    encoder = BertEncoder(
        BertConfig(
            vocab_size=len(VOCAB),
            hidden_size=48,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=96,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            max_position_embeddings=64,
            initializer_range=0.1,
        )
    )
    encoder.build_weights()
    write_model_directory(path, encoder, vocab=VOCAB, lowercase=True, task=None)
    return path


@pytest.fixture(scope="session")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(VOCAB, lowercase=True)


@pytest.fixture
def quiet_console() -> Console:
    return Console(io.StringIO())


@pytest.fixture(scope="session")
def config_of(small_model):
    """Make a `FinetuneConfig` of the given output with values that learn fast."""

    def make(**values) -> FinetuneConfig:
        defaults = {
            "init": str(small_model),
            "precision": "float32",
            "learning_rate": 3e-3,
            "batch_size": 8,
            "warmup_proportion": 0.1,
            "checkpoint_minutes": 0.0,
            "max_seq_length": 64,
        }
        return finetune_config({**defaults, **values})

    return make


@pytest.fixture
def small_config(config_of, tmp_path):
    """Make a `FinetuneConfig` with a run in the folder of the test."""
    return functools.partial(config_of, output=str(tmp_path / "run"))


@pytest.fixture
def run_command(tmp_path, monkeypatch):
    """Run a command line in a folder of its own; it must succeed."""
    monkeypatch.chdir(tmp_path)

    def run(line: str) -> None:
        with pytest.raises(SystemExit) as exited:
            main(line.split())
        assert exited.value.code == 0

    return run

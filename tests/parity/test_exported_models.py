"""HuggingFace's automatic classes open the exports of every task, with equal logits."""

from __future__ import annotations

import io
import json
import os
import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.loading import load_trained_model
from bert_tf.export.model_card import card_of
from bert_tf.export.registry import FORMATS
from bert_tf.export.saved_model import text_module
from bert_tf.models.encoder import BertEncoder
from bert_tf.serving.row_batches import single_batch
from bert_tf.tasks.registry import (
    PRETRAINED_TASKS,
    TASKS,
    served_task_from_settings,
    with_task_of_weights,
)
from bert_tf.weights.model_directory import read_model_directory, write_model_directory

PYTHON = os.environ.get("BERT_PARITY_PYTHON")
SCRIPT = Path(__file__).with_name("exported_logits.py")
TOLERANCE = 1e-5
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
TABLE = {"columns": {"text": "text", "text_pair": None, "label": "label"}, "max_seq_length": 24}
LABELS = ["O", "B-city", "I-city"]
SETTINGS = {
    "classification": {
        **TABLE,
        "labels": ["no", "yes, or so", "Łódź"],
        "calibration": "temperature",
        "temperature": 2.5,
    },
    "multilabel": {**TABLE, "labels": LABELS, "label_separator": "|", "thresholds": "0.5"},
    "regression": {
        **TABLE,
        "target_scaling": "standard",
        "target_mean": 2.5,
        "target_scale": 1.5,
    },
    "tagging": {
        "columns": {"text": "text", "tokens": "tokens", "tags": "tags", "entities": "entities"},
        "scheme": "bio",
        "labels": LABELS,
        "max_seq_length": 24,
        "window_stride": 8,
    },
    "qa": {
        "columns": {"question": "q", "context": "c", "answer": "a", "answer_start": "s"},
        "max_seq_length": 24,
        "doc_stride": 8,
        "max_query_length": 8,
        "max_answer_length": 8,
        "n_best_size": 5,
        "null_score_diff_threshold": 0.0,
        "may_be_unanswerable": True,
    },
    "multiple-choice": {
        "columns": {"context": "c", "question": None, "choices": ["choices"], "label": "label"},
        "label_form": "number",
        "max_seq_length": 24,
    },
    "fill-mask": {"columns": {"text": "text"}, "max_seq_length": 24, "top_k": 3},
    "likelihood": {"columns": {"text": "text", "text_pair": None}, "max_seq_length": 24},
    "next-sentence": {"columns": {"text": "text", "text_pair": "pair"}, "max_seq_length": 24},
}
NAMES = {
    "encoder/sequence_output": "encoder/last_hidden_state",
    "encoder/pooled_output": "encoder/pooler_output",
}
OURS_ALONE = ("encoder/mean_embedding",)
# Its vectors are compared by test_sentence_transformers.py.
ELSEWHERE = {"similarity"}


def test_every_task_is_compared():
    assert SETTINGS.keys() | ELSEWHERE == TASKS.keys() | PRETRAINED_TASKS.keys()


def trained_model(name, folder):
    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=40,
        initializer_range=0.3,
    )
    keras.utils.set_random_seed(len(name))
    settings = None if name == "encoder" else {"task": name, **SETTINGS[name]}
    if settings is None:
        model = BertEncoder(config, dtype="float32")
    else:
        task = served_task_from_settings(settings, name)
        model = task.build_model(config, policy="float32")
    model.build_weights()
    write_model_directory(folder, model, vocab=VOCAB, lowercase=True, task=settings)
    return load_trained_model(read_model_directory(folder))


def random_rows(rank):
    generator = np.random.default_rng(rank)
    lengths = np.array([24, 3, 11, 17, 5, 8])
    mask = np.arange(24) < lengths[:, None]
    ids = np.where(mask, generator.integers(1, len(VOCAB), mask.shape), 0)
    types = np.where(mask, np.arange(24) >= lengths[:, None] // 2, 0)
    rows = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}
    shape = (6, 24) if rank == 2 else (2, 3, 24)
    return {name: values.astype(np.int32).reshape(shape) for name, values in rows.items()}


@pytest.mark.parametrize("kind", ["huggingface", "savedmodel"])
def test_automatic_classes_compute_equal_logits(tmp_path, kind):
    if PYTHON is None:
        pytest.skip("BERT_PARITY_PYTHON is not set: `make parity` names one with the library")
    cases, ours = {}, {}
    for name in (*SETTINGS, "encoder"):
        trained = trained_model(name, tmp_path / f"{name}-trained")
        folder = tmp_path / name
        FORMATS[kind].load().write(trained, folder, Console(io.StringIO()))
        module = text_module(trained)
        rows = random_rows(module.ids_rank)
        cases[name] = {
            "folder": str(folder),
            "auto_class": card_of(trained).transformers_class,
            "inputs": {
                "input_ids": rows["input_word_ids"].tolist(),
                "attention_mask": rows["input_mask"].tolist(),
                "token_type_ids": rows["input_type_ids"].tolist(),
            },
        }
        if name in SETTINGS and "labels" in SETTINGS[name]:
            cases[name]["labels"] = SETTINGS[name]["labels"]
        batch = {key: tf.constant(values) for key, values in rows.items()}
        outputs = module.head_outputs(batch)
        ours |= {f"{name}/{key}": (values.numpy(), rows) for key, values in outputs.items()}
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    command = [PYTHON, str(SCRIPT), str(tmp_path / "cases.json"), str(tmp_path / "theirs.npz")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = np.load(tmp_path / "theirs.npz")
    compared = {name: NAMES.get(name, name) for name in ours if name not in OURS_ALONE}
    assert set(compared.values()) == set(theirs.files)
    for name, other in compared.items():
        values, rows = ours[name]
        mask = rows["input_mask"]
        is_of_tokens = values.shape[: mask.ndim] == mask.shape
        chosen = mask == 1 if is_of_tokens else ...  # what is computed for padding is of no account
        np.testing.assert_allclose(
            values[chosen], theirs[other][chosen], rtol=0, atol=TOLERANCE, err_msg=name
        )


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_folders_without_a_task_read_pairs_and_texts_as_transformers_does(tmp_path, task):
    """Cross-encoders and models of entailment, in folders that do not name their inputs."""
    if PYTHON is None:
        pytest.skip("BERT_PARITY_PYTHON is not set: `make parity` names one with the library")
    trained_model(task, tmp_path / "model")
    (tmp_path / "model" / "task.json").unlink()
    (tmp_path / "model" / "SHA256SUMS").unlink()
    console = Console(io.StringIO())
    directory = with_task_of_weights(read_model_directory(tmp_path / "model"), console)
    assert directory.task["is_pair_optional"]
    trained = load_trained_model(directory)
    texts = ["a b c", "d", "e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k"]
    pairs = ["x y", "z z z z", "a b c d e f g h i j k l m n o p q r s t u v w x y z"]
    sides = {"pairs": [texts, pairs], "single": [texts]}
    cases = {
        name: {
            "folder": str(tmp_path / "model"),
            "auto_class": "AutoModelForSequenceClassification",
            "texts": values,
        }
        for name, values in sides.items()
    }
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    command = [PYTHON, str(SCRIPT), str(tmp_path / "cases.json"), str(tmp_path / "theirs.npz")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = np.load(tmp_path / "theirs.npz")
    host = trained.task.host()
    tokenizer = trained.tokenizer
    for name, second in (("pairs", pairs), ("single", [""] * len(texts))):
        rows = host.encode(tokenizer, {"text": texts, "text_pair": second})
        batch = single_batch(rows.sequences, tokenizer.pad_id)
        ours = trained.task.sequence_outputs(trained.model, batch)["logits"].numpy()
        np.testing.assert_allclose(ours, theirs[f"{name}/logits"], rtol=0, atol=TOLERANCE)
    assert np.abs(theirs["pairs/logits"] - theirs["single/logits"]).max() > 100 * TOLERANCE

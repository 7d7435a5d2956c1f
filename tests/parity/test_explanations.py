"""Explanations beside integrated gradients by PyTorch, or captum, on the same weights."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from behavior.exported_models import CLASSIFICATION, MULTI_LABEL, REGRESSION, VOCAB
from behavior.small_models import write_model

from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.tasks.explaining import gradients
from bert_tf.tasks.explaining.words import place_words

PYTHON = os.environ.get("BERT_PARITY_PYTHON")
SCRIPT = Path(__file__).with_name("integrated_gradients.py")
TOLERANCE = 1e-4
POINTS = 50  # as captum's default
TASKS = {"pair": CLASSIFICATION, "labels": MULTI_LABEL, "value": REGRESSION}
ROW = {"text": "The film was very good, and the river is red.", "text_pair": "where is abc?"}


def test_shares_equal_those_of_other_libraries(tmp_path, monkeypatch):
    if PYTHON is None:
        pytest.skip("BERT_PARITY_PYTHON is not set: `make parity` names one with the library")
    monkeypatch.setattr(gradients, "FIRST_POINTS", POINTS)
    monkeypatch.setattr(gradients, "MOST_POINTS", POINTS)
    cases, ours = {}, {}
    for kind, task in TASKS.items():
        folder = tmp_path / kind
        write_model(folder, task, vocab=VOCAB, seed=3, num_hidden_layers=2, initializer_range=0.3)
        explainer = gradients.Explainer(folder)
        columns = task["columns"]
        row = {name: text for name, text in ROW.items() if columns[name] is not None}
        tokenizer = HostTokenizer(VOCAB, lowercase=True)
        placed = place_words(explainer.task.host(), tokenizer, row)
        sequences = placed.rows.sequences
        assert len(sequences) == 1
        is_second = np.arange(len(sequences.ids)) >= sequences.second_starts[0]
        for number, found in enumerate(explainer.explain(row)):
            target = number if kind != "pair" else task["labels"].index(found.target)
            cases[f"{kind}-{number}"] = {
                "folder": str(folder),
                "input_ids": sequences.ids.tolist(),
                "token_type_ids": is_second.astype(int).tolist(),
                "baseline": np.where(
                    placed.word_of >= 0, tokenizer.mask_id, sequences.ids
                ).tolist(),
                "target": target,
                "points": POINTS,
            }
            ours[f"{kind}-{number}"] = (found.shares, placed.word_of)
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    command = [PYTHON, str(SCRIPT), str(tmp_path / "cases.json"), str(tmp_path / "theirs.npz")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = np.load(tmp_path / "theirs.npz")
    assert len(ours) == 5
    for name, (shares, word_of) in ours.items():
        of_words = np.bincount(word_of[word_of >= 0], weights=theirs[name][word_of >= 0])
        np.testing.assert_allclose(shares, of_words, rtol=0, atol=TOLERANCE, err_msg=name)

"""Heads that other libraries trained: the task that each is for."""

import io
import json
import shutil
from pathlib import Path

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.export.loading import load_trained_model, unread_heads
from bert_tf.tasks.registry import with_task_of_weights
from bert_tf.weights.model_directory import read_model_directory

GOLDEN = Path(__file__).parents[2] / "golden" / "models"


def folder_with(name, folder, **changes):
    shutil.copytree(GOLDEN / name, folder)
    document = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**document, **changes}))
    return folder


@pytest.mark.parametrize(
    ("name", "task", "labels"),
    [
        ("classification", "classification", ["bad", "fair", "good"]),
        ("token_classification", "tagging", None),
        ("question_answering", "qa", None),
        ("multiple_choice", "multiple-choice", None),
        ("multi_label", "multilabel", None),
        ("regression", "regression", None),
    ],
)
def test_a_head_decides_the_task_and_keeps_its_labels(tmp_path, name, task, labels):
    names = {} if labels is None else {"id2label": dict(enumerate(labels))}
    directory = read_model_directory(folder_with(name, tmp_path / "model", **names))
    log = io.StringIO()
    found = with_task_of_weights(directory, Console(log))
    assert found.task["task"] == task
    assert f"has a head for {task}; settings that weights do not store" in log.getvalue()
    if labels is not None:
        assert list(found.task["labels"]) == labels
    trained = load_trained_model(found)  # all weights of the head are there
    assert unread_heads(trained) == []
    assert with_task_of_weights(found, Console(log)) is found


ENTAILMENT = {"0": "contradiction", "1": "entailment", "2": "neutral"}


@pytest.mark.parametrize(
    ("name", "changes", "pair", "is_optional"),
    [
        ("regression", {}, "text_pair", True),
        ("regression", {"sentence_transformers": {"version": "5.1.0"}}, "text_pair", None),
        ("regression", {"sbert_ce_default_activation_function": "x"}, "text_pair", None),
        ("classification", {}, "text_pair", True),
        ("classification", {"id2label": ENTAILMENT}, "text_pair", None),
        ("classification", {"finetuning_task": "mnli"}, "text_pair", None),
        ("classification", {"finetuning_task": "sst2"}, None, None),
    ],
)
def test_a_folder_may_say_that_its_texts_are_pairs(tmp_path, name, changes, pair, is_optional):
    directory = read_model_directory(folder_with(name, tmp_path / "model", **changes))
    found = with_task_of_weights(directory, Console(io.StringIO())).task
    assert found["columns"]["text_pair"] == pair
    assert found.get("is_pair_optional") == is_optional


def test_a_second_file_may_say_that_its_texts_are_pairs(tmp_path):
    folder = folder_with("regression", tmp_path / "model")
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(json.dumps({"model_type": "CrossEncoder"}))
    found = with_task_of_weights(read_model_directory(folder), Console(io.StringIO())).task
    assert found["columns"]["text_pair"] == "text_pair"
    assert "is_pair_optional" not in found


@pytest.mark.parametrize("name", ["encoder", "pretraining", "masked_lm"])
def test_heads_of_pretraining_are_no_task(name):
    directory = read_model_directory(GOLDEN / name)
    assert with_task_of_weights(directory, Console(io.StringIO())).task is None
    assert unread_heads(load_trained_model(directory)) == []


def test_heads_that_cannot_be_told_are_refused(tmp_path):
    odd = folder_with("classification", tmp_path / "odd", problem_type="regression")
    with pytest.raises(UsageError, match=r"a head \(classifier.weight\) for which there is no"):
        with_task_of_weights(read_model_directory(odd), Console(io.StringIO()))
    twins = {"0": "other", "1": "spam", "2": "other"}
    two = folder_with("classification", tmp_path / "two", id2label=twins)
    with pytest.raises(InputError, match="has the label 'other' twice, as 0 and 2"):
        with_task_of_weights(read_model_directory(two), Console(io.StringIO()))

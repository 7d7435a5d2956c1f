"""The base of tasks on texts and pairs, by a task that adds little to it."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from behavior.tasks import check_task
from toy_regression import REGRESSION, RegressionTask

from bert_tf.base.errors import BertPipelineError, UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.tables.rejects import Reject
from bert_tf.export.formats.saved_model import write_saved_model
from bert_tf.export.loading import load_trained_model
from bert_tf.tasks.registry import TASKS, task_from_settings
from bert_tf.weights.model_directory import read_model_directory, write_model_directory

ROWS = "body,reply,stars\nthe film was good,it is,3.5\nvery bad,not good,-1\nblue,red,2\n"


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(TASKS, REGRESSION.name, REGRESSION)


@pytest.fixture
def read_training(small_config, tmp_path, quiet_console):
    """Reads the rows as a fine-tuning does."""
    train = tmp_path / "train.csv"
    train.write_text(ROWS)

    def read(pair):
        config = small_config(
            task="toy-regression",
            train=str(train),
            text_column="body",
            text_pair_column=pair,
            label_column="stars",
            target_scale=10,
        )
        return RegressionTask.from_training(config, quiet_console)

    return read


@pytest.mark.parametrize("pair", [None, "reply"])
def test_a_task_on_the_base(read_training, tokenizer, pair):
    task, table = read_training(pair)
    results = check_task(task, table, tokenizer)
    assert [(row["line"], row["label"]) for row in results.predictions] == [
        (2, 3.5),
        (3, -1.0),
        (4, 2.0),
    ]
    assert json.loads(json.dumps(results.predictions)) == results.predictions
    assert set(task.texts(table)) == set(task.inputs())


def test_options_become_fields_and_settings(read_training):
    task, _ = read_training("reply")
    assert task.settings() == {
        "task": "toy-regression",
        "target_scale": 10.0,
        "columns": {"text": "body", "text_pair": "reply", "label": "stars"},
        "max_seq_length": 64,
    }


@pytest.mark.parametrize("missing", ["target_scale", "columns", "max_seq_length"])
def test_incomplete_settings_are_refused(read_training, missing):
    task, _ = read_training(None)
    settings = {key: value for key, value in task.settings().items() if key != missing}
    with pytest.raises(UsageError, match=f"m: its task.json is incomplete .*{missing}"):
        task_from_settings(settings, "m")


def test_unusable_rows_become_rejects(read_training):
    _, table = read_training(None)
    fault = Reject(table.source, 3, "is out of range", "-1")
    kept = table.rejecting({1: fault})
    assert kept.columns == {"body": ["the film was good", "blue"], "stars": ["3.5", "2"]}
    assert kept.lines == [2, 4]
    assert kept.rejects == [fault]
    assert len(kept) + len(kept.rejects) == len(table)


@pytest.mark.slow  # exports a model twice
def test_export_finds_a_graph_that_predicts_otherwise(
    read_training, tokenizer, tmp_path, monkeypatch
):
    task, _ = read_training("reply")
    config = BertConfig(
        vocab_size=len(tokenizer.vocab),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    keras.utils.set_random_seed(1)
    model = task.build_model(config, policy="float32")
    model.build_weights()
    path = tmp_path / "model"
    write_model_directory(path, model, vocab=tokenizer.vocab, lowercase=True, task=task.settings())
    exported = write_saved_model(load_trained_model(read_model_directory(path)), path)
    got = exported.predict({"text": ["a film", "blue"], "text_pair": ["red", "the city"]})
    assert got.keys() == {"predicted_value"}
    assert got["predicted_value"].dtype == np.float32

    scaled = RegressionTask.served_predictions
    monkeypatch.setattr(
        RegressionTask,
        "served_predictions",
        lambda task, logits: scaled(dataclasses.replace(task, target_scale=11.0), logits),
    )
    with pytest.raises(BertPipelineError, match="results differ by"):
        write_saved_model(load_trained_model(read_model_directory(path)), path)

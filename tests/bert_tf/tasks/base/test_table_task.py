"""The base of tasks on texts and pairs, by a task that adds little to it."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.tasks import check_task
from behavior.toy_regression import REGRESSION, RegressionTask

from bert_tf.base.errors import BertPipelineError, ConfigError, UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.data.tables.rejects import Reject
from bert_tf.export.loading import load_trained_model
from bert_tf.export.saved_model import write_saved_model
from bert_tf.tasks.registry import TASKS, task_from_settings
from bert_tf.weights.model_directory import read_model_directory, write_model_directory

ROWS = "review,reply,stars\nthe film was good,it is,3.5\nvery bad,not good,-1\nblue,red,2\n"


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(TASKS, REGRESSION.name, REGRESSION)


@pytest.fixture
def read_training(small_config, tmp_path, quiet_console):
    """Read the rows as a fine-tuning does."""
    train = tmp_path / "train.csv"
    train.write_text(ROWS)

    def read(pair):
        config = small_config(
            task="toy-regression",
            train=str(train),
            text_column="review",
            text_pair_column=pair,
            label_column="stars",
            target_scale=10,
        )
        return RegressionTask.from_training(config, quiet_console)

    return read


@pytest.mark.slow
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
        "columns": {"body": "review", "reply": "reply", "label": "stars"},
        "max_seq_length": 64,
    }


def test_columns_of_inputs_with_names_of_their_own(read_training):
    task, _ = read_training("reply")

    def with_columns(**values):
        values = {"model": "m", "data": "d", "output": "o", **values}
        return task.with_columns(build_section(EvaluateConfig, values))

    other = with_columns(columns=["body=opinion"], label_column="points")
    assert other.settings()["columns"] == {
        "body": "opinion",
        "reply": "reply",
        "label": "points",
    }
    assert with_columns() == task
    reads = "its model reads body and reply and label"
    for values, flag in (
        ({"columns": ["text=opinion"]}, "--column text=opinion"),
        ({"text_column": "opinion"}, "--text-column"),
    ):
        with pytest.raises(UsageError, match=f"^{flag} does not apply to m: {reads}$"):
            with_columns(**values)


@pytest.mark.parametrize("missing", ["target_scale", "columns", "max_seq_length"])
def test_incomplete_settings_are_refused(read_training, missing):
    task, _ = read_training(None)
    settings = {key: value for key, value in task.settings().items() if key != missing}
    with pytest.raises(UsageError, match=f"m: its task.json is incomplete .*{missing}"):
        task_from_settings(settings, "m")


def test_unusable_rows_become_rejects(read_training):
    _, table = read_training(None)
    kept = table.rejecting({1: ("is out of range", "-1")})
    assert kept.columns == {"review": ["the film was good", "blue"], "stars": ["3.5", "2"]}
    assert kept.lines == [2, 4]
    assert kept.rejects == [Reject(table.source, 3, "is out of range", "-1")]
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
    got = exported.predict({"body": ["a film", "blue"], "reply": ["red", "the city"]})
    assert got.keys() == {"predicted_value", "lost_tokens"}
    assert got["lost_tokens"].tolist() == [0, 0]
    assert got["predicted_value"].dtype == np.float32

    scaled = RegressionTask.served_predictions
    monkeypatch.setattr(
        RegressionTask,
        "served_predictions",
        lambda task, logits: scaled(dataclasses.replace(task, target_scale=11.0), logits),
    )
    with pytest.raises(BertPipelineError, match="results differ by"):
        write_saved_model(load_trained_model(read_model_directory(path)), path)


LONG = "body,stars\n" + "".join(
    f"{text},{stars}\n"
    for stars, text in enumerate(
        [
            "the film was good " * 4,
            "bad",
            "red blue green " * 5,
            "it is not a very fine film in lima",
        ]
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("long_texts", ["head-tail", "windows"])
def test_texts_that_are_too_long(small_config, tokenizer, tmp_path, quiet_console, long_texts):
    train = tmp_path / "train.csv"
    train.write_text(LONG)
    columns = {"text_column": "body", "label_column": "stars"}
    config = small_config(
        task="toy-regression",
        train=str(train),
        max_seq_length=8,
        long_texts=long_texts,
        **columns,
    )
    task, table = RegressionTask.from_training(config, quiet_console)
    assert task.settings()["long_texts"] == long_texts
    check_task(task, table, tokenizer)
    data = task.encode(table, tokenizer, training=True)
    if long_texts == "windows":
        sums = np.bincount(data.owners, weights=data.weights)
        np.testing.assert_allclose(sums, 1.0, atol=1e-6)
        assert np.bincount(data.owners).tolist() == [3, 1, 3, 2]
        assert data.targets["target"].tolist() == data.owners.tolist()  # stars count the rows
    with pytest.raises(ConfigError, match="long_texts: .* needs a single text per row"):
        small_config(
            task="toy-regression",
            train="t",
            long_texts=long_texts,
            text_pair_column="reply",
        )


@pytest.mark.slow
def test_logits_of_windows_are_averaged(small_config, tokenizer, tmp_path, quiet_console):
    """The model sees each window as a text of its own."""
    train = tmp_path / "train.csv"
    train.write_text(LONG)
    config = small_config(
        task="toy-regression",
        train=str(train),
        max_seq_length=8,
        long_texts="windows",
        text_column="body",
        label_column="stars",
    )
    task, table = RegressionTask.from_training(config, quiet_console)
    keras.utils.set_random_seed(1)
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = task.build_model(
        BertConfig(
            vocab_size=len(tokenizer.vocab),
            intermediate_size=8,
            max_position_embeddings=8,
            initializer_range=0.5,
            **shape,
        ),
        policy="float32",
    )
    model.build_weights()
    served = task.serving_module(model, tokenizer).predict(
        {"body": tf.constant(table.columns["body"])}, tf.constant(16)
    )["predicted_value"]
    words = table.columns["body"][2].split()
    starts = [*range(0, len(words) - 6, 5), len(words) - 6]  # 6 tokens, of which 1 overlaps
    windows = [" ".join(words[start : start + 6]) for start in starts]
    alone = dataclasses.replace(task, long_texts="head")
    values = alone.reference_outputs(model, tokenizer, {"body": windows})["predicted_value"]
    assert np.std(values) > 1e-3
    np.testing.assert_allclose(served[2], values.mean(), atol=1e-5)

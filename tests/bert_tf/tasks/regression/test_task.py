"""Regression from a table to predictions."""

from __future__ import annotations

import io
import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.tasks import check_task

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.regression.task import RegressionTask
from bert_tf.tasks.running.evaluation import evaluate
from bert_tf.tasks.running.finetuning import finetune
from bert_tf.weights.model_directory import (
    load_all_weights,
    read_model_directory,
    write_model_directory,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "models"
RATED = {"good": 1030.0, "fine": 1010.0, "bad": 980.0}
TRAINING = [
    (f"{before} {word} {after}", number)
    for before in ("the", "a", "it is", "was")
    for word, number in RATED.items()
    for after in ("film", "city")
]


def write_rows(path, rows, header="text,label"):
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    path.write_text("\n".join([header, *lines, ""]))
    return str(path)


@pytest.fixture
def read_training(small_config, tmp_path, quiet_console):
    """Read rows as a fine-tuning does."""

    def read(rows, **values):
        path = write_rows(tmp_path / "rows.csv", rows)
        config = small_config(task="regression", train=path, **values)
        return RegressionTask.from_training(config, quiet_console)

    return read


@pytest.mark.parametrize(
    ("cells", "is_doubted"),
    [(("21.798", "950"), True), (("21.798", "0.950"), False), (("21", "950"), False)],
)
def test_numbers_with_three_decimals_may_be_thousands(small_config, tmp_path, cells, is_doubted):
    path = write_rows(tmp_path / "rows.csv", list(zip("ab", cells, strict=True)))
    shown = io.StringIO()
    RegressionTask.from_training(small_config(task="regression", train=path), Console(shown))
    assert (
        "three decimals, such as 21.798; if these are thousands" in shown.getvalue()
    ) == is_doubted


@pytest.mark.slow
@pytest.mark.parametrize("pair", [None, "reply"])
@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_task(small_config, tokenizer, tmp_path, quiet_console, pair, scaling):
    rows = [(text, text[::-1], n / 7) for n, (text, _) in enumerate(TRAINING[:5])]
    path = write_rows(tmp_path / "rows.csv", rows, header="text,reply,label")
    config = small_config(
        task="regression", train=path, text_pair_column=pair, target_scaling=scaling
    )
    task, table = RegressionTask.from_training(config, quiet_console)
    results = check_task(task, table, tokenizer)
    assert [row["label"] for row in results.predictions] == [n / 7 for n in range(5)]


@pytest.mark.slow  # trains to the end
@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_numbers_of_any_range_are_learned(small_config, tmp_path, quiet_console, scaling):
    offset = 0 if scaling == "standard" else 1000
    rows = [(text, (number - offset) / (1 if scaling == "standard" else 20))
            for text, number in TRAINING]  # fmt: skip
    train = write_rows(tmp_path / "train.csv", [*rows, ("a film", "n/a"), ("", 3)])
    config = small_config(
        task="regression", train=train, eval=train, epochs=30, target_scaling=scaling
    )
    result = finetune(config, quiet_console)
    assert [(reject.line, reject.reason) for reject in result.train.source.rejects] == [
        (27, "column 'text' is empty"),
        (26, "label is not a finite number"),
    ]
    assert result.best["pearson"] > 0.95
    values = {"model": str(tmp_path / "run"), "data": train, "output": "x"}
    _, _, results = evaluate(build_section(EvaluateConfig, values), quiet_console)
    for name in ("loss", "pearson", "spearman", "r2", "mse"):
        assert results.metrics[name] == pytest.approx(result.best[name], rel=1e-3), name
    scale = result.task.target_scale
    assert results.metrics["mse"] == pytest.approx(results.metrics["loss"] * scale**2, rel=1e-3)
    deviation = np.std([number for _, number in rows])
    assert results.metrics["rmse"] < deviation / 2
    assert scale == pytest.approx(deviation if scaling == "standard" else 1)


def test_the_loss_is_of_standardized_numbers(read_training):
    task, table = read_training(TRAINING)
    numbers = np.array([number for _, number in TRAINING])
    target = task.targets(table)["target"]
    np.testing.assert_allclose(target, (numbers - numbers.mean()) / numbers.std(), rtol=1e-6)
    outputs = {"logits": tf.constant(numbers[:, None] + 3, tf.float32)}
    batch = {"target": tf.constant(target), "row_weights": tf.ones(len(numbers))}
    loss = task.loss_parts(outputs, batch).losses["loss"] / len(numbers)
    np.testing.assert_allclose(loss, (3 / numbers.std()) ** 2, rtol=1e-4)


def test_the_loss_of_the_mean_is_chance(read_training):
    numbers = np.array([number for _, number in TRAINING])
    for scaling, expected in (("standard", 1.0), ("none", numbers.var())):
        task, table = read_training(TRAINING, target_scaling=scaling)
        weights = np.ones(len(TRAINING), np.float32)
        assert task.chance_loss(task.targets(table), weights) == pytest.approx(expected)


@pytest.mark.parametrize(("case", "is_regression"), [("regression", True), ("multi_label", False)])
def test_folders_of_other_libraries(case, is_regression):
    directory = read_model_directory(GOLDEN / case)
    task = RegressionTask.from_weights(directory)
    assert (task is not None) == is_regression
    if task is not None:
        assert task_from_settings(task.settings(), "m") == task
        model = task.build_model(directory.config, policy="float32")
        model.build_weights()
        load_all_weights(model, directory)
        kernel = directory.tensors["classifier.weight"]
        np.testing.assert_array_equal(model.classifier.kernel, kernel.T)


def test_a_model_directory_has_the_head_that_gives_the_numbers(
    read_training, tokenizer, tmp_path, small_model
):
    task, _ = read_training(TRAINING)
    keras.utils.set_random_seed(3)
    model = task.build_model(read_model_directory(small_model).config, policy="float32")
    model.build_weights()
    model.classifier.bias.assign([0.5])
    path = tmp_path / "model"
    write_model_directory(path, model, vocab=tokenizer.vocab, lowercase=True, task=task.settings())
    directory = read_model_directory(path)
    config = json.loads((path / "config.json").read_text())
    assert config["problem_type"] == "regression"
    assert config["id2label"] == {"0": "LABEL_0"}

    rows = {
        "input_word_ids": np.array([[2, 5, 6, 3], [2, 7, 3, 0]], np.int32),
        "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], np.int32),
        "input_type_ids": np.zeros((2, 4), np.int32),
    }
    pooled = model.encoder.encode_inputs(rows, training=False, dropout_key=None)
    kernel, bias = directory.tensors["classifier.weight"], directory.tensors["classifier.bias"]
    numbers = model(rows).numpy()
    by_hand = pooled["pooled_output"].numpy() @ kernel.T + bias
    np.testing.assert_allclose(by_hand, numbers, rtol=1e-6)
    assert numbers.min() > 900

    other = RegressionTask.from_settings(
        {**task.settings(), "target_mean": -5.0, "target_scale": 3.0}
    ).build_model(directory.config, policy="float32")
    other.build_weights()
    load_all_weights(other, directory)
    np.testing.assert_allclose(other(rows), numbers, rtol=1e-5)


def test_settings_and_card(read_training):
    task, _ = read_training([("a", 1), ("b", 3)])
    assert task.settings() == {
        "task": "regression",
        "target_scaling": "standard",
        "target_mean": 2.0,
        "target_scale": 1.0,
        "columns": {"text": "text", "text_pair": None, "label": "label"},
        "max_seq_length": 64,
    }
    (fact,) = task.card_facts()
    assert fact.startswith("numbers of the training rows: mean 2, standard deviation 1;")
    unscaled, _ = read_training([("a", 1), ("b", 3)], target_scaling="none")
    assert (unscaled.target_mean, unscaled.target_scale) == (0.0, 1.0)
    assert list(unscaled.card_facts()) == []


def test_rows_are_described(read_training):
    task, table = read_training([("a", 1), ("b", 3)])
    assert list(task.describe({"training": table})) == [
        "  label                   training",
        "  minimum                        1",
        "  mean                           2",
        "  maximum                        3",
        "  standard deviation             1",
    ]


def test_constant_targets_are_refused(read_training):
    with pytest.raises(InputError, match=r"holds 3 in every row; regression needs"):
        read_training([("a", 3), ("b", 3.0)], target_scaling="none")

"""Classification from a table to predictions."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from behavior.tasks import check_task
from scipy.special import softmax

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, InputError, RowsRejected, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.registry import task_class
from bert_tf.tasks.running.evaluation import evaluate
from bert_tf.tasks.running.finetuning import finetune

ROWS = [
    ("the film was good", "good"),
    ("it was very bad", "bad"),
    ("a fine , fine film", "good"),
    ("not good", "bad"),
    ("it is red", "neutral"),
    ("the city is blue", "neutral"),
    ("bad , bad , bad", "bad"),
    ("very , very good", "good"),
]
TWO_LABELS = ClassificationTask(
    labels=("bad", "good"),
    text_column="text",
    text_pair_column=None,
    label_column="label",
    max_seq_length=16,
)


def write_rows(path, rows, header="text,label"):
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    path.write_text("\n".join([header, *lines, ""]))
    return str(path)


@pytest.mark.slow  # trains to the end
def test_a_few_rows_are_learned_by_heart(small_config, tmp_path, quiet_console):
    train = write_rows(tmp_path / "train.csv", [*(ROWS * 20), ("", "good")])
    known = write_rows(tmp_path / "eval.csv", [*ROWS, ("what ?", "puzzling")])
    result = finetune(
        small_config(task="classification", train=train, eval=known, epochs=3), quiet_console
    )
    assert result.task.settings() == {
        "task": "classification",
        "labels": ["bad", "good", "neutral"],
        "class_weights": "none",
        "label_weights": [],
        "weight_column": None,
        "label_smoothing": 0.0,
        "calibration": "none",
        "temperature": 1.0,
        "is_temperature_in_head": False,
        "columns": {"text": "text", "text_pair": None, "label": "label"},
        "max_seq_length": 64,
    }
    assert [reject.reason for reject in result.train.source.rejects] == ["column 'text' is empty"]
    assert [reject.detail for reject in result.evaluation.source.rejects] == ["'puzzling'"]
    assert result.best["accuracy"] == result.best["macro_f1"] == 1.0
    assert result.training.eval["loss"] < 0.1
    assert result.training.step == 60

    _, source, results = evaluate(
        build_section(
            EvaluateConfig, {"model": str(tmp_path / "run"), "data": known, "output": "x"}
        ),
        quiet_console,
    )
    assert results.metrics["matthews_correlation"] == pytest.approx(1.0)
    assert results.metrics["loss"] == pytest.approx(
        -np.mean([np.log(row["predicted_score"]) for row in results.predictions]), abs=1e-3
    )
    assert [row["predicted_label"] for row in results.predictions] == [label for _, label in ROWS]
    assert [row["line"] for row in results.predictions] == list(range(2, 10))
    assert len(source.rejects) == 1


def test_pairs_and_other_columns(small_config, tokenizer, tmp_path, quiet_console):
    train = tmp_path / "train.jsonl"
    rows = [("good film", "bad film", 1), ("red", "very good", 10), ("what ?", "blue", 2)]
    train.write_text(
        "".join(json.dumps({"a": a, "b": b, "better": which}) + "\n" for a, b, which in rows)
    )
    config = small_config(
        task="classification",
        train=str(train),
        text_column="a",
        text_pair_column="b",
        label_column="better",
    )
    task, source = ClassificationTask.from_training(config, quiet_console)
    data = task.encode(source, tokenizer, training=True)
    assert task.labels == ("1", "2", "10")
    assert data.targets["label"].tolist() == [0, 2, 1]
    assert data.rows.lengths.tolist() == [7, 6, 6]
    assert data.rows.second_starts.tolist() == [4, 3, 4]
    assert ClassificationTask.from_settings(task.settings()) == task


@pytest.mark.slow  # exports a model
@pytest.mark.parametrize("pair", [None, "reply"])
def test_task(small_config, tokenizer, tmp_path, quiet_console, pair):
    rows = [(text, text[::-1], label) for text, label in ROWS]
    path = write_rows(tmp_path / "rows.csv", rows, header="text,reply,label")
    config = small_config(task="classification", train=path, text_pair_column=pair)
    check_task(*ClassificationTask.from_training(config, quiet_console), tokenizer)


def test_one_label_is_not_enough(small_config, tmp_path, quiet_console):
    train = write_rows(tmp_path / "train.csv", [("a film", "good"), ("the film", "good")])
    with pytest.raises(InputError, match="holds 'good' in every row; .* at least two labels"):
        finetune(small_config(task="classification", train=train), quiet_console)


def test_rows_longer_than_the_model_are_refused(small_config, tmp_path, quiet_console):
    train = write_rows(tmp_path / "train.csv", ROWS)
    config = small_config(task="classification", train=train, max_seq_length=65)
    with pytest.raises(UsageError, match="--max-seq-length 65: .* positions for 64"):
        finetune(config, quiet_console)


@pytest.mark.parametrize("task", ["classification", "multilabel"])
def test_a_column_of_ids_is_refused(small_config, tmp_path, quiet_console, task):
    rows = [("a film", f"row {number}") for number in range(30)]
    config = small_config(task=task, train=write_rows(tmp_path / "train.csv", rows))
    message = "column 'label' holds another value in each of 30 rows, such as 'row 0', like a col"
    with pytest.raises(InputError, match=message):
        task_class(task).from_training(config, quiet_console)
    again = write_rows(tmp_path / "again.csv", [*rows, rows[0]])
    task_class(task).from_training(dataclasses.replace(config, train=again), quiet_console)


@pytest.mark.parametrize(
    ("labels", "rows", "is_doubted"),
    [(9, 9, True), (6, 11, True), (6, 12, False), (5, 5, False), (2, 2, False), (2, 3, False)],
)
def test_labels_that_are_nearly_all_different_are_worth_a_warning(
    small_config, tmp_path, labels, rows, is_doubted
):
    table = [("a", str(number % labels)) for number in range(rows)]
    train = write_rows(tmp_path / "train.csv", table)
    said = []
    console = Console()
    console.warn = lambda *lines: said.extend(lines)
    ClassificationTask.from_training(small_config(task="classification", train=train), console)
    assert [line for line in said if "is it the right column" in line] == (
        [
            f"{train}: column 'label' holds {labels} labels in {rows} rows; is it the right column?"
        ] if is_doubted else []
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "length", "least"), [(None, 2, 3), (None, 3, 0), ("b", 4, 5), ("b", 5, 0)]
)
def test_rows_have_room_for_a_token_of_each_text(small_config, pair, length, least):
    values = {"task": "classification", "train": "x", "text_pair_column": pair}
    if least:
        with pytest.raises(ConfigError, match=rf"max_seq_length: {length} .* use at least {least}"):
            small_config(**values, max_seq_length=length)
    else:
        small_config(**values, max_seq_length=length)


@pytest.mark.parametrize(
    ("pair", "flag", "refused"),
    [
        (None, "text_column", False),
        (None, "label_column", False),
        (None, "text_pair_column", True),
        ("b", "text_pair_column", False),
        (None, "question_column", True),
        (None, "answer_column", True),
    ],
)
def test_columns_that_a_model_does_not_read_are_refused(pair, flag, refused):
    task = dataclasses.replace(TWO_LABELS, text_pair_column=pair)
    values = {"model": "m", "data": "d", "output": "o", flag: "other"}
    config = build_section(EvaluateConfig, values)
    if refused:
        with pytest.raises(UsageError, match=f"--{flag.replace('_', '-')} does not apply to m"):
            task.with_columns(config)
    else:
        assert getattr(task.with_columns(config), flag) == "other"


def test_a_model_without_its_head_is_not_measured(small_model, tmp_path, quiet_console):
    shutil.copytree(small_model, tmp_path / "model")
    (tmp_path / "model" / "task.json").write_text(json.dumps(TWO_LABELS.settings()))
    data = write_rows(tmp_path / "eval.csv", ROWS[:2])
    values = {"model": str(tmp_path / "model"), "data": data, "output": "x"}
    with pytest.raises(UsageError, match="weights of .*classifier.* are missing"):
        evaluate(build_section(EvaluateConfig, values), quiet_console)


def test_evaluation_rows_without_a_known_label(small_config, tmp_path, quiet_console):
    train = write_rows(tmp_path / "train.csv", ROWS)
    other = write_rows(tmp_path / "eval.csv", [("a film", "dull")])
    config = small_config(task="classification", train=train, eval=other)
    with pytest.raises(InputError, match=r"eval.csv:2 \('dull'\).*which knows 'bad', 'good'"):
        finetune(config, quiet_console)


def test_blanks_around_labels_are_none_of_them(small_config, tmp_path, quiet_console):
    train = write_rows(tmp_path / "train.csv", [(text, f" {label} ") for text, label in ROWS])
    config = small_config(task="classification", train=train)
    task, _ = ClassificationTask.from_training(config, quiet_console)
    assert task.labels == ("bad", "good", "neutral")
    path = write_rows(tmp_path / "eval.csv", [("a film", "good "), ("a city", "bad")])
    assert task.gold(task.read(path, quiet_console)) == ["good", "bad"]
    old = dataclasses.replace(task, labels=("bad", "good "))  # of a model that has them
    assert old.gold(old.read(path, quiet_console)) == ["good ", "bad"]


@pytest.mark.parametrize(
    ("known", "written"),
    [(("False", "True"), "true"), (("0.0", "1.0"), "1"), (("No", "Yes"), "yes")],
)
def test_labels_that_two_files_write_in_two_ways_are_named(known, written, tmp_path, quiet_console):
    task = dataclasses.replace(TWO_LABELS, labels=known)
    path = write_rows(tmp_path / "eval.csv", [("a film", written)])
    with pytest.raises(RowsRejected, match=f"likely '{known[1]}'") as refused:
        task.read(path, quiet_console)
    assert len(refused.value.rejects) == 1


WEIGHTED = [
    ("the film was good", "good", "2"),
    ("it was very bad", "bad", "0.5"),
    ("a fine film", "good", "none"),
    ("not good", "bad", "0"),
    ("very good", "good", "1"),
]


@pytest.mark.slow
def test_weights_of_rows_and_labels(small_config, tokenizer, tmp_path, quiet_console):
    train = write_rows(tmp_path / "train.csv", WEIGHTED, header="text,label,trust")
    config = small_config(
        task="classification", train=train, weight_column="trust", class_weights="balanced"
    )
    task, source = ClassificationTask.from_training(config, quiet_console)
    assert [str(reject) for reject in source.rejects] == [
        f"{train}:4: weight is not a number from 0 ('none')"
    ]
    data = task.encode(source, tokenizer, training=True)
    assert data.weights.tolist() == [2.0, 0.5, 0.0, 1.0]
    assert task.label_weights == pytest.approx((3.5 / (2 * 0.5), 3.5 / (2 * 3)))
    assert task.encode(source, tokenizer, training=False).weights.tolist() == [1.0] * 4
    check_task(task, source, tokenizer)

    plain = write_rows(tmp_path / "eval.csv", ROWS[:2])  # which needs no weights
    assert len(task.read(plain, quiet_console)) == 2


def test_the_loss_is_the_weighted_mean_of_pytorch(tokenizer):
    """CrossEntropyLoss(weight, label_smoothing), each row counted as often as it weighs."""
    golden = np.load(Path(__file__).parents[3] / "golden" / "cross_entropy.npz")
    task = dataclasses.replace(
        TWO_LABELS,
        labels=("a", "b", "c", "d"),
        label_weights=tuple(golden["class_weights"].tolist()),
        label_smoothing=0.1,
    )
    batch = {
        "label": tf.constant(golden["labels"], tf.int32),
        "row_weights": tf.ones(len(golden["labels"])),
    }

    def loss(rows, weights):
        chosen = {name: tf.gather(values, rows) for name, values in batch.items()}
        chosen["row_weights"] = tf.constant(weights, tf.float32)
        outputs = {"logits": tf.gather(golden["logits"], rows)}
        parts = task.loss_parts(outputs, chosen)
        assert parts.metrics["accuracy"][1] == np.count_nonzero(weights)
        return (parts.losses["loss"] / task.weights(chosen)["loss"]).numpy()

    rows = list(range(12))
    assert loss(rows, [1.0] * 12) == pytest.approx(golden["weighted-0.1/loss"], rel=1e-5)
    assert loss(rows[:3], [2.0, 0.0, 1.0]) == pytest.approx(loss([0, 0, 2], [1.0] * 3), rel=1e-5)


def test_rows_that_all_weigh_nothing(small_config, tmp_path, quiet_console):
    rows = [(text, label, "0") for text, label in ROWS]
    train = write_rows(tmp_path / "train.csv", rows, header="text,label,trust")
    config = small_config(task="classification", train=train, weight_column="trust")
    with pytest.raises(InputError, match="column 'trust' holds 0 in every row"):
        ClassificationTask.from_training(config, quiet_console)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"class_weights": "even"}, "class_weights: expected none, balanced or label=weight"),
        (
            {"calibration": "temperature", "eval_fraction": 0},
            "calibration: needs rows to fit it on; give --eval",
        ),
        ({"label_smoothing": 1}, "label_smoothing: expected a number"),
        ({"calibration": "platt"}, "calibration: expected one of none, temperature"),
    ],
)
def test_options_that_are_refused(small_config, values, fault):
    with pytest.raises(ConfigError, match=fault):
        small_config(task="classification", train="x", **values)


def test_calibration_divides_logits_and_keeps_labels(tokenizer):
    task = dataclasses.replace(TWO_LABELS, calibration="temperature")
    random = np.random.default_rng(2)
    logits = random.normal(0, 5, (200, 2)).astype(np.float32)
    labels = (logits[:, 1] - logits[:, 0] + random.logistic(0, 10, 200) > 0).astype(np.int32)
    data = TaskData(source=None, rows=None, targets={"label": labels}, weights=np.ones(200))
    fitted = task.fitted(data, {"logits": logits})
    assert 5 < fitted.temperature < 20
    assert task.fitted(data, {"logits": logits * 2}).temperature == pytest.approx(
        2 * fitted.temperature, rel=1e-3
    )
    before, after = task.predictions(logits), fitted.predictions(logits)
    assert before["predicted_label"] == after["predicted_label"]
    np.testing.assert_allclose(
        after["probabilities"], softmax(logits / fitted.temperature, axis=1), rtol=1e-5
    )
    served = fitted.served_predictions(tf.constant(logits))
    np.testing.assert_allclose(served["probabilities"], after["probabilities"], atol=1e-6)
    assert dataclasses.replace(task, calibration="none").fitted(data, {}).temperature == 1.0
    assert any("divided by" in fact for fact in fitted.card_facts())


@pytest.mark.slow
def test_a_calibrated_model_as_any(small_config, tokenizer, tmp_path, quiet_console):
    path = write_rows(tmp_path / "rows.csv", ROWS)
    config = small_config(task="classification", train=path)
    task, source = ClassificationTask.from_training(config, quiet_console)
    task = dataclasses.replace(task, calibration="temperature", temperature=1.7)
    report = check_task(task, source, tokenizer).report
    assert report.details["calibration"]["temperature"] == 1.7
    assert json.loads(json.dumps(report.details)) == report.details
    assert sum(entry["support"] for entry in report.details["labels"].values()) == len(ROWS)
    assert report.lines[-1].startswith("calibration: temperature 1.7;")

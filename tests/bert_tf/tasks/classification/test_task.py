"""Classification from a table to predictions."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from behavior.tasks import check_task

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.evaluation import evaluate
from bert_tf.tasks.finetuning import finetune

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
        "columns": {"text": "text", "text_pair": None, "label": "label"},
        "max_seq_length": 64,
    }
    assert [reject.reason for reject in result.train.source.rejects] == ["column 'text' is empty"]
    assert [reject.detail for reject in result.evaluation.source.rejects] == ["'puzzling'"]
    assert result.best["accuracy"] == result.best["macro_f1"] == 1.0
    assert result.training.eval["loss"] < 0.1
    assert result.training.step == 60

    source, results = evaluate(
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
    console.warn = said.append
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
    task = ClassificationTask(
        labels=("a", "b"),
        text_column="text",
        text_pair_column=pair,
        label_column="label",
        max_seq_length=16,
    )
    values = {"model": "m", "data": "d", "output": "o", flag: "other"}
    config = build_section(EvaluateConfig, values)
    if refused:
        with pytest.raises(UsageError, match=f"--{flag.replace('_', '-')} has no meaning for m"):
            task.with_columns(config)
    else:
        assert getattr(task.with_columns(config), flag) == "other"


def test_a_model_without_its_head_is_not_measured(small_model, tmp_path, quiet_console):
    shutil.copytree(small_model, tmp_path / "model")
    task = ClassificationTask(
        labels=("bad", "good"),
        text_column="text",
        text_pair_column=None,
        label_column="label",
        max_seq_length=16,
    )
    (tmp_path / "model" / "task.json").write_text(json.dumps(task.settings()))
    data = write_rows(tmp_path / "eval.csv", ROWS[:2])
    values = {"model": str(tmp_path / "model"), "data": data, "output": "x"}
    with pytest.raises(UsageError, match="weights of .*classifier.* are missing"):
        evaluate(build_section(EvaluateConfig, values), quiet_console)


def test_evaluation_rows_without_a_known_label(small_config, tmp_path, quiet_console):
    train = write_rows(tmp_path / "train.csv", ROWS)
    other = write_rows(tmp_path / "eval.csv", [("a film", "dull")])
    config = small_config(task="classification", train=train, eval=other)
    with pytest.raises(InputError, match=r"no row has a label the model knows .*eval.csv:2"):
        finetune(config, quiet_console)

"""Multi-label classification from a table to predictions."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from behavior.tasks import check_task

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.config.sections import EvaluateConfig
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.multilabel.task import MultiLabelTask
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.running.finetuning import finetune
from bert_tf.weights.model_directory import read_model_directory

GOLDEN = Path(__file__).parents[3] / "golden" / "models"
ROWS = [
    ("the film was good", ["film", "praise"]),
    ("it was very bad", ["blame"]),
    ("the city is red", []),
    ("a bad film", ["film", "blame"]),
    ("very , very good", ["praise"]),
    ("a film", ["film"]),
]


@pytest.fixture
def read_training(small_config, tmp_path):
    """Read rows as a fine-tuning does; it prints to `stream`."""

    def read(rows, name="rows.jsonl", stream=None, **values):
        path = write_rows(tmp_path / name, rows)
        config = small_config(task="multilabel", train=str(path), **values)
        return MultiLabelTask.from_training(config, Console(stream or io.StringIO()))

    return read


def write_rows(path, rows):
    """JSON lines and Parquet have lists, CSV and TSV texts."""
    if path.suffix == ".jsonl":
        objects = ({"text": text, "reply": text[::-1], "label": one} for text, one in rows)
        path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    elif path.suffix == ".parquet":
        texts, labels = zip(*rows, strict=True)
        pq.write_table(pa.table({"text": texts, "label": pa.array(labels)}), path)
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ";"
        lines = (f"{text}{delimiter}{'|'.join(one)}\n" for text, one in rows)
        path.write_text("".join([f"text{delimiter}label\n", *lines]))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("thresholds", ["global", "per-label", "0.5"])
@pytest.mark.parametrize("pair", [None, "reply"])
def test_task(read_training, tokenizer, thresholds, pair):
    task, table = read_training(ROWS, thresholds=thresholds, text_pair_column=pair)
    assert task.labels == ("blame", "film", "praise")
    task = dataclasses.replace(task, decision_thresholds=(0.4, 0.5, 0.45))
    results = check_task(task, table, tokenizer)
    assert [row["label"] for row in results.predictions][:3] == [["film", "praise"], ["blame"], []]
    for row in results.predictions:
        assert len(row["predicted_labels"]) == len(row["predicted_scores"])


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.parquet"])
def test_every_format_gives_the_same_labels(read_training, name):
    task, table = read_training(ROWS, name)
    assert task.gold(table) == [sorted(one) for _, one in ROWS]
    assert task.targets(table)["labels"].tolist() == [
        [label in one for label in ("blame", "film", "praise")] for _, one in ROWS
    ]


def test_rows_with_null_have_no_label_and_rows_without_the_key_are_rejected(
    read_training, tmp_path
):
    task, table = read_training([*ROWS, ("null", None), ("one", "film"), ("object", {"film": 2})])
    assert task.gold(table)[-2:] == [[], ["film"]]
    assert [reject.reason for reject in table.rejects] == [
        "label is neither a list nor a text of labels"
    ]
    (tmp_path / "eval.jsonl").write_text('{"text": "a"}\n{"text": "b", "label": ["film"]}\n')
    rows = task.read(str(tmp_path / "eval.jsonl"), Console(io.StringIO()))
    assert [str(reject) for reject in rows.rejects] == [
        f"{tmp_path}/eval.jsonl:1: column 'label' is missing"
    ]


def test_rows_with_an_unknown_label_are_rejected(read_training, tmp_path):
    task, _ = read_training(ROWS)
    stream = io.StringIO()
    path = write_rows(tmp_path / "eval.csv", [("a", ["film", "Film"]), ("b", []), ("c", ["x"])])
    table = task.read(str(path), Console(stream))
    assert task.gold(table) == [[]]
    assert [(reject.line, reject.reason, reject.detail) for reject in table.rejects] == [
        (2, "label is not one the model knows", "'Film'"),
        (4, "label is not one the model knows", "'x'"),
    ]
    assert "'Film' (1 row, line 2) is not a label of the model (likely 'film')" in stream.getvalue()
    path = write_rows(tmp_path / "eval.csv", [("a", ["x"])])
    with pytest.raises(InputError, match="1 × label is not one.*'x'.*of the model, which knows '"):
        task.read(str(path), Console(stream))


def test_what_is_likely_a_mistake_is_worth_a_warning(read_training):
    stream = io.StringIO()
    read_training([("a", ["x,y"]), ("b", ["x"]), ("c", ["x"])], stream=stream)
    shown = stream.getvalue()
    assert "if ',' separates labels, give --label-separator ','" in shown
    assert "'x,y' (1 row, line 1) is the only row of its label" in shown
    stream = io.StringIO()
    read_training([*ROWS, *ROWS], stream=stream)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("rows", "held"), [([("a", []), ("b", [])], "no label;"), ([("a", ["x"])], "no label but 'x';")]
)
def test_two_labels_are_needed(read_training, rows, held):
    with pytest.raises(InputError, match=f"column 'label' holds {held} at least two labels"):
        read_training(rows)


def test_rows_are_described(read_training):
    task, table = read_training(ROWS)
    assert list(task.describe({"training": table, "evaluation": table})) == [
        "  label     training  evaluation",
        "  blame            2           2",
        "  film             3           3",
        "  praise           2           2",
        "  1 training row without a label",
        "  1 evaluation row without a label",
    ]


def test_the_loss_of_frequencies_is_chance(read_training):
    task, table = read_training(ROWS)
    targets = task.targets(table)
    frequencies = targets["labels"].mean(axis=0)
    logits = np.tile(np.log(frequencies / (1 - frequencies)), (len(ROWS), 1)).astype(np.float32)
    batch = {"labels": tf.constant(targets["labels"]), "row_weights": tf.ones(len(ROWS))}
    loss = task.loss_parts({"logits": tf.constant(logits)}, batch).losses["loss"] / len(ROWS)
    chance = task.chance_loss(targets, np.ones(len(ROWS), np.float32))
    assert chance == pytest.approx(float(loss), rel=1e-6)


def test_a_new_head_predicts_the_frequencies_of_the_labels(read_training, small_model):
    everywhere = [(text, [*one, "text"]) for text, one in ROWS]
    task, table = read_training(everywhere)
    frequencies = task.targets(table)["labels"].mean(axis=0)
    assert task.label_frequencies == pytest.approx(frequencies)
    config = read_model_directory(small_model).config
    model = task.build_model(config, policy="float32")
    model.build_weights()
    chances = tf.sigmoid(tf.convert_to_tensor(model.classifier.bias)).numpy()
    assert chances == pytest.approx([*frequencies[:3], 1 - 1e-4], rel=1e-4)
    unknown = dataclasses.replace(task, label_frequencies=())
    model = unknown.build_model(config, policy="float32")
    model.build_weights()
    assert not np.any(model.classifier.bias)


def test_thresholds_are_fitted_on_evaluation_rows(read_training, tokenizer):
    task, table = read_training(ROWS)
    targets = task.targets(table)
    data = TaskData(source=table, rows=None, targets=targets, weights=np.ones(len(ROWS)))
    probabilities = np.where(targets["labels"], [0.4, 0.9, 0.8], [0.2, 0.7, 0.1])
    reduced = {"logits": np.log(probabilities / (1 - probabilities)).astype(np.float32)}

    per_label = dataclasses.replace(task, thresholds="per-label").fitted(data, reduced)
    assert per_label.decision_thresholds == pytest.approx((0.3, 0.8, 0.45))
    metrics = per_label.metrics(table, per_label.predictions(reduced["logits"]))
    assert metrics["subset_accuracy"] == metrics["samples_f1"] == 1.0
    # All of `film` and `praise`, nothing else: an F1 of 10/12; with `blame` from 0.3 on 14/17.
    assert task.fitted(data, reduced).decision_thresholds == pytest.approx((0.75,))
    fixed = dataclasses.replace(task, thresholds="0.5")
    assert fixed.fitted(data, reduced) == fixed
    (_, fact) = per_label.card_facts()
    assert "is at least 0.3 to 0.8, one for each label" in fact
    assert [*fixed.card_facts()][1].endswith("is at least 0.5")


def test_labels_are_escaped_in_the_graph(read_training):
    names = ['say "so"', "back\\slash", "łódź", "two\nlines"]
    task, _ = read_training([("a", names)])
    served = task.served_predictions(tf.constant([[9.0, 9, 9, 9], [-9.0, -9, -9, -9]]))
    texts = [text.decode() for text in served["predicted_labels"].numpy()]
    assert [json.loads(text) for text in texts] == [sorted(names), []]
    scores = [json.loads(text) for text in served["predicted_scores"].numpy()]
    assert scores == [[0.999877] * 4, []]


def test_probabilities_of_extreme_logits(read_training):
    task, _ = read_training(ROWS)
    predicted = task.predictions(np.array([[-1e4, 0, 1e4]], np.float32))
    assert predicted["probabilities"].tolist() == [[0.0, 0.5, 1.0]]
    assert predicted["predicted_labels"] == [["film", "praise"]]


@pytest.mark.parametrize(("case", "is_ours"), [("multi_label", True), ("classification", False)])
def test_folders_of_other_libraries(case, is_ours):
    task = MultiLabelTask.from_weights(read_model_directory(GOLDEN / case))
    assert (task is not None) == is_ours
    if task is not None:
        assert task.labels == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3")
        assert task_from_settings(task.settings(), "m") == task


@pytest.mark.slow  # trains to the end
def test_a_few_rows_are_learned_by_heart(small_config, tmp_path, quiet_console):
    path = str(write_rows(tmp_path / "rows.jsonl", ROWS * 10))
    config = small_config(task="multilabel", train=path, eval=path, epochs=8)
    result = finetune(config, quiet_console)
    assert result.best["micro_f1"] == result.best["subset_accuracy"] == 1.0
    assert len(result.task.decision_thresholds) == 1
    directory = read_model_directory(tmp_path / "run")
    document = json.loads((directory.path / "config.json").read_text())
    assert document["problem_type"] == "multi_label_classification"
    assert document["id2label"] == {"0": "blame", "1": "film", "2": "praise"}
    elsewhere = MultiLabelTask.from_weights(directory)
    assert (elsewhere.labels, elsewhere.thresholds) == (result.task.labels, "0.5")


def test_a_separator_that_is_likely_another_is_named(read_training):
    stream = io.StringIO()
    read_training([("a", ["x"]), ("b", ["x,y"]), ("c", ["y"]), ("d", [])], stream=stream)
    assert (
        "1 of 3 rows with labels have one such as 'x,y'; if ',' separates labels, give "
        "--label-separator ',' (now '|')"
    ) in stream.getvalue()
    read_training([("a", ["x"]), ("b", ["y"]), ("c", [])], stream=stream)
    assert "every row has exactly one label, or none; if cells hold" in stream.getvalue()


def test_a_column_per_label_is_read_again_from_a_model(small_config, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("text,film,play,city\na,1,0,0\nb,1,1,0\nc,0,0,0\n")
    stream = io.StringIO()
    columns = ("film", "play", "city")
    config = small_config(task="multilabel", train=str(path), label_column=columns)
    task, table = MultiLabelTask.from_training(config, Console(stream))
    assert task.labels == ("film", "play")
    assert task.gold(table) == [["film"], ["film", "play"], []]
    assert "no row has the label 'city'" in stream.getvalue()
    task = task_from_settings(task.settings(), "run")
    assert task.gold(task.read(str(path), Console(stream))) == task.gold(table)
    (tmp_path / "lists.csv").write_text("text,tags\na,play|film\n")
    given = EvaluateConfig(model="m", data="d", output="o", label_column=("tags",))
    other = task.with_columns(given)
    found = other.read(str(tmp_path / "lists.csv"), Console(stream))
    assert other.gold(found) == [["film", "play"]]


def test_names_of_zeros_and_ones_are_those_of_later_files_too(read_training, tmp_path):
    rows = [("a", [1, 0, 1]), ("b", [0, 1, 0]), ("c", [0, 0, 0])]
    with pytest.raises(UsageError, match="--label-names A,B,C"):
        read_training(rows)
    task, table = read_training(rows, label_names=("film, play, city",))
    assert task.gold(table) == [["city", "film"], ["play"], []]
    task = task_from_settings(task.settings(), "run")
    path = write_rows(tmp_path / "dev.jsonl", [("a", [1, 1, 0])])
    assert task.gold(task.read(str(path), Console(io.StringIO()))) == [["film", "play"]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"label_names": ("a,b,a",)}, "label_names: 'a' is given twice"),
        ({"label_column": ("a", "a")}, "label_column: 'a' is given twice"),
        ({"label_column": ("a", "b"), "label_names": ("c",)}, "leave one of the two out"),
    ],
)
def test_names_and_columns_are_there_once(read_training, values, message):
    with pytest.raises(ConfigError, match=message):
        read_training(ROWS, **values)


def test_one_column_of_zeros_and_ones_is_refused(read_training):
    with pytest.raises(UsageError, match="--label-column A --label-column B, or fine-tune for"):
        read_training([("a", 1), ("b", 0)])


def test_task_files_of_labels_in_texts_have_no_new_keys(read_training):
    task, _ = read_training(ROWS)
    assert not {"label_columns", "label_names"} & task.settings().keys()

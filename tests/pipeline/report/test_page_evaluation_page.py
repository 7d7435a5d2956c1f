"""The page of an evaluation: its content; texts stay texts, and it stays small."""

import dataclasses
import json

import numpy as np
import pytest
from behavior.pages import check_page
from behavior.toy_regression import REGRESSION, RegressionTask

from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.base.prediction_rows import TaskReport, TaskResults
from bert_tf.tasks.base.report_sections import Example, ExamplesSection, TableSection
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.registry import TASKS
from pipeline.outputs.manifest import write_manifest
from pipeline.report.page import artifact_page, contents_of, evaluation_page
from pipeline.report.records import ShownToken
from pipeline.report.records_page import _segment_html

EVIL = "<script>alert('x')</script> & \"y\""


def classified(labels, texts, gold, logits, source="rows.csv", run=None):
    """Return the page of a classifier with these logits."""
    task = ClassificationTask(
        labels=labels,
        text_column="text",
        text_pair_column=None,
        label_column="label",
        max_seq_length=16,
    )
    table = Table(
        source=source,
        columns={"text": texts, "label": gold},
        lines=list(range(2, len(texts) + 2)),
        rejects=[],
    )
    predicted = task.predictions(np.asarray(logits, np.float32))
    results = task.measure(table, predicted)
    return evaluation_page(
        task,
        table,
        dataclasses.replace(results, predicted=predicted),
        model="run",
        facts=["the model is the last"],
        chosen_by="accuracy",
        run=run,
    )


def test_a_page_of_a_run_ends_with_its_curves(tmp_path):
    rows = (("bad", "good"), ["one", "two"], ["bad", "good"], [[2, 0], [3, 0]])
    assert "Training" not in check_page(classified(*rows, run=tmp_path)).text
    lines = [
        {"step": step, "split": split, "loss": 1.0, "accuracy": 0.5}
        for step in (1, 2)
        for split in ("train", "eval")
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    html = classified(*rows, run=tmp_path)
    page = check_page(html)
    begin = page.text.index("Training")
    assert {"loss", "accuracy"} <= set(page.text[begin:])
    assert html.count('class="curve train of-0"') == html.count('class="curve eval of-0"') == 2


def test_the_contents_of_a_page_are_those_of_its_sections():
    assert contents_of([]) == ""
    examples = [Example(line=1, facts={}, texts={})]
    assert (
        contents_of(
            [
                TableSection(title="T", columns=(), rows=[]),
                TableSection(title="U", columns=(), rows=[]),
                ExamplesSection(title="None", examples=[]),
                ExamplesSection(title="Wrong answers", examples=examples),
            ]
        )
        == "tables, the wrong answers"
    )


def test_it_shows_metrics_confusions_calibration_and_the_most_wrong_rows():
    page = check_page(
        classified(
            ("bad", "good"),
            ["one", "two two", "three", "four", "five"],
            ["bad", "good", "good", "bad", "good"],
            [[2, 0], [3, 0], [0, 4], [0, 1], [1, 0]],
        )
    )
    shown = " ".join(page.text)
    assert "classification: run on rows.csv" in shown and "The model is the last." in shown
    assert "accuracy 0.400 ± 0.219" in shown and ("class", "chose") in page.attributes
    for heading in ("Labels", "Confusion", "Calibration", "Accuracy by length", "Most wrong rows"):
        assert heading in page.text
    # By loss, each predicted with the other label: log(1 + e^3), log(1 + e^1) twice.
    losses = [page.text[i + 1] for i, text in enumerate(page.text) if text == "loss"]
    assert losses == ["3.049", "1.313", "1.313"]
    wrong = page.text[page.text.index("Most wrong rows") :]
    assert [text for text in wrong if text in ("one", "two two", "three", "four", "five")] == [
        "two two", "four", "five"
    ]  # fmt: skip


def test_it_shows_what_a_perfect_model_could_reach_and_why_no_more(monkeypatch):
    monkeypatch.setitem(TASKS, REGRESSION.name, REGRESSION)
    table = Table(source="f.csv", columns={"body": ["a"], "label": ["1"]}, lines=[2], rejects=[])
    task = RegressionTask(
        text_column="body",
        text_pair_column=None,
        label_column="label",
        max_seq_length=16,
        target_scale=1.0,
    )
    ceiling = {"metric": "r2", "value": 0.75, "causes": [{"cause": f"1 of 4 rows is {EVIL}"}]}
    results = TaskResults(
        metrics={"r2": 0.5, "mae": 1.0},
        predictions=[{"line": 2}],
        report=TaskReport(details={"ceiling": ceiling}),
    )
    page = check_page(evaluation_page(task, table, results, model="run"))
    shown = " ".join(" ".join(page.text).split())
    assert "r2 0.5000 of 0.7500 at best mae 1.0000" in shown
    assert (
        f"Even a perfect model could not reach more on these rows: 1 of 4 rows is {EVIL}" in shown
    )
    perfect = dataclasses.replace(
        results, report=TaskReport(details={"ceiling": {**ceiling, "causes": []}})
    )
    assert "at best" not in evaluation_page(task, table, perfect, model="run")


def test_texts_of_the_data_are_never_markup():
    html = classified(
        (EVIL, "good", "fine"), [EVIL, "b"], [EVIL, "good"], [[0, 1, 0], [1, 0, 0]], source=EVIL
    )
    page = check_page(html)
    assert "<script" not in html
    assert page.text.count(EVIL) >= 5, "title, heading, label, confusion, text"


@pytest.mark.slow
def test_a_big_evaluation_has_a_small_page():
    rows, labels = 20_000, tuple(f"label {number}" for number in range(200))
    random = np.random.default_rng(0)
    gold = [labels[number] for number in random.integers(0, 200, rows)]
    texts = ["word " * 2000] * rows
    html = classified(labels, texts, gold, random.normal(size=(rows, 200)))
    check_page(html)
    assert len(html) < 200_000
    assert "The 20 most frequent of 200 labels." in html and "150 more are in metrics.json" in html


def test_a_task_without_a_page_of_its_own_shows_its_first_predictions(monkeypatch):
    monkeypatch.setitem(TASKS, REGRESSION.name, REGRESSION)
    task = RegressionTask(
        text_column="t", text_pair_column=None, label_column="n", max_seq_length=8, target_scale=1.0
    )
    table = Table(
        source="n.csv", columns={"t": ["a", "b"], "n": ["1", "2"]}, lines=[2, 3], rejects=[]
    )
    predicted = task.predictions(np.array([[1.5], [2.5]], np.float32))
    page = check_page(evaluation_page(task, table, task.measure(table, predicted), model="run"))
    assert "First predictions" in page.text
    assert [text for text in page.text if text in ("1.5", "2.5")] == ["1.5", "2.5"]


@pytest.mark.parametrize("rows", [1, 2])
def test_few_rows_that_are_all_right_have_a_page(rows):
    page = check_page(classified(("bad", "good"), ["x"] * rows, ["bad"] * rows, [[9, 0]] * rows))
    assert "None." in page.text


# The page of an artifact is a page like the others; see `test_artifact` for what it says.


@pytest.mark.parametrize("steps", [0, 3])
def test_a_run_has_its_curves(tmp_path, steps):
    lines = [{"step": step, "split": "train", "loss": 2.0 / step} for step in range(1, steps + 1)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_manifest(tmp_path, {"command": "train", "config": {"size": "<tiny>"}})
    page = check_page(artifact_page(str(tmp_path), samples=1))
    assert page.elements.count("svg") == (1 if steps else 0)
    assert "<tiny>" in page.text
    assert "input" not in page.elements, "a single run is not hidden from others"


@pytest.mark.slow  # reads records, with TensorFlow
def test_records_have_histograms_and_examples(tmp_path):
    from behavior.pretraining_runs import write_data

    data = write_data(tmp_path / "data")
    page = check_page(artifact_page(str(data), samples=2))
    for shown in ("Tokens per record", "Targets per record", "Examples", "[MASK]"):
        assert shown in page.text


def test_pieces_of_words_are_joined_and_named_where_they_are_predicted():
    tokens = [
        ShownToken("walk"),
        ShownToken("##ing"),
        ShownToken("[MASK]", "##s"),
        ShownToken("on"),
    ]
    assert _segment_html(tokens) == (
        'walking <span class="target mask">[MASK]<small> → ##s</small></span> on'
    )

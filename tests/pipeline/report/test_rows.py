"""The pages of scored rows, evaluations and doubtful labels, laid out from their files alone."""

import csv
import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from behavior.pages import check_page

from bert_tf.base.errors import InputError
from bert_tf.data.tables.tables import read_table_blocks
from bert_tf.tasks.base.prediction_rows import Abstention
from pipeline.report.document import table_cell
from pipeline.report.page import artifact_page
from pipeline.report.rows import predictions_page
from pipeline.report.rows.scored_page import page_of_scores
from pipeline.scoring.join import ScoringCounts
from pipeline.scoring.parts import Fact


def finished(path, command, config=None, **keys):
    """Write the manifest of a job with one output."""
    manifest = {
        "manifest_version": 1, "command": command, "config": config or {}, "inputs": [],
        "counts": {"rows_out": 4, "rows_rejected": 0}, "metrics": {}, "timings": {"total": 1.0},
        "versions": {}, "outputs": [], **keys,
    }  # fmt: skip
    beside = path.with_name(f"{path.name}.manifest.json")
    place = path / "manifest.json" if path.is_dir() else beside
    place.write_text(json.dumps(manifest))


def shown(path, samples=2):
    return " ".join(" ".join(check_page(artifact_page(str(path), samples=samples)).text).split())


def test_scored_rows_show_labels_certainty_and_the_least_certain_rows(tmp_path):
    table = tmp_path / "scored.csv"
    rng = np.random.default_rng(1)
    scores = rng.permutation(np.linspace(0.4, 0.99, 40)).tolist()
    with table.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["ticket", "body", "answer", "sure"])
        for row, score in enumerate(scores):
            rows.writerow([f"T-{row}", f"text <{row}>", "yes" if row % 4 else "no", score])
    columns = {"text": "body", "added": ["answer", "sure"]}
    config = {"rename": ["predicted_label=answer", "predicted_score=sure"]}
    finished(table, "score", config, columns=columns)
    text = shown(table)
    assert "label rows of all yes 30 75% no 10 25%" in text
    assert "Probability of the predictions" in text
    least = text[text.index("Least certain rows") :]
    order = np.argsort(scores)[:30].tolist()
    places = [least.index(f"text <{row}>") for row in order]
    assert places == sorted(places)
    assert f"line {order[0] + 2} id T-{order[0]} answer" in least


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [{"predicted_labels": ["a", "b"]}, {"predicted_labels": []}],
            ["a 1 50%", "b 1 50%", "(none) 1 50%"],
        ),
        (
            [{"text": "In Rome", "predicted_entities": [{"text": "Rome", "label": "place"}] * 2}],
            ["place 1 100%", "Rome (place), Rome (place)"],
        ),
        ([{"predicted_value": 0.5}, {"predicted_value": 2.5}], ["Predicted values"]),
        (
            [{"predicted_entities": [{"text": "Rome", "label": ""}]}, {"predicted_entities": None}],
            ["(unnamed) 1 50%", "(none) 1 50%"],
        ),
    ],
    ids=["labels", "entities", "numbers", "unnamed entities"],
)
def test_each_kind_of_prediction_is_summed_up(rows, expected, tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    finished(tmp_path, "score")
    text = shown(tmp_path)
    for each in expected:
        assert each in text


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_row_without_a_prediction_is_neither_right_nor_wrong(ending, tmp_path):
    labels = ["a", "b", None, None]
    rows = [
        {"text": str(n), "label": "a", "predicted_label": label, "predicted_score": 0.9 - n / 10}
        for n, label in enumerate(labels)
    ]
    table = tmp_path / f"rows.{ending}"
    with table.open("w", newline="") as stream:
        if ending == "csv":
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        else:
            stream.writelines(f"{json.dumps(row)}\n" for row in rows)
    columns = {"text": "text", "added": ["predicted_label", "predicted_score"]}
    finished(table, "score", columns=columns)
    gathered = predictions_page._read(table, {}, 1)
    assert gathered.labels == {"a": 1, "b": 1, "(none)": 2}
    assert gathered.true == {"a": 4}
    assert gathered.wrong == [False, True] and len(gathered.scores) == 2
    assert len(gathered.least) == 4
    assert "(none) 2 50%" in shown(table)


def test_tokens_for_masks_are_no_labels(tmp_path):
    tokens = [[{"token": "capital", "score": 0.5, "text": "the capital"}]]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"predicted_tokens": tokens}))
    finished(tmp_path, "score")
    assert "Predicted labels" not in shown(tmp_path)


def test_of_a_damaged_table_the_readable_rows_are_shown_with_the_fault(tmp_path, monkeypatch):
    table = tmp_path / "rows.csv"
    table.write_text("predicted_label\n" + "a\n" * 5)
    finished(table, "score")

    def damaged(*args, **options):
        yield from read_table_blocks(*args, **options)
        raise InputError("rows.csv: cannot be read to its end")

    monkeypatch.setattr(predictions_page, "read_table_blocks", damaged)
    text = shown(table)
    assert "a 5 100%" in text
    assert "Only the first 5 rows could be read: rows.csv: cannot be read to its end" in text


def test_an_evaluation_tells_wrong_predictions_apart_and_names_the_row_in_its_file(tmp_path):
    rows = [
        {"line": 7, "id": "x", "label": "a", "predicted_label": "b", "predicted_score": 0.6},
        {"line": 9, "id": "y", "label": "a", "predicted_label": "a", "predicted_score": 0.9},
    ]
    (tmp_path / "predictions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "report.html").write_text("")
    finished(tmp_path, "evaluate")
    text = shown(tmp_path)
    assert "label rows of all labeled so b 1 50% 0 a 1 50% 2" in text
    assert "report.html shows the most telling rows" in text
    assert "wrong" in text and "line 7 id x label a" in text


def test_of_many_probabilities_the_highest_are_shown(tmp_path):
    shares = {"a": 0.125, "b": 0.5, "c": 0.25, "d": 0.0625}
    (tmp_path / "rows.jsonl").write_text(json.dumps({"predicted_probabilities": shares}))
    finished(tmp_path, "score")
    assert "b 0.5, c 0.25, a 0.125, …" in shown(tmp_path)


def test_doubtful_labels_look_as_on_the_page_of_their_job(tmp_path):
    (tmp_path / "label_errors.csv").write_text(
        "line,label,label_probability,suggested_label,suggested_probability,text\n"
        "5,a,0.01,b,0.9,<hello>\nbroken,a,0.2,b,0.3,left out\n"
    )
    finished(tmp_path, "label-errors", counts={"rows_doubted": 1})
    text = shown(tmp_path)
    assert "doubtful labels 1" in text and "a (0.0100)" in text and "<hello>" in text
    assert "left out" not in text


@pytest.mark.parametrize(
    ("text", "is_read"), [(b"long " * 40_000, True), (b"caf\xe9", False)], ids=["long", "latin-1"]
)
def test_doubtful_rows_of_any_text_have_a_page(text, is_read, tmp_path):
    (tmp_path / "label_errors.csv").write_bytes(
        b"line,label,label_probability,suggested_label,suggested_probability,text\n"
        b"5,a,0.01,b,0.9," + text + b"\n"
    )
    finished(tmp_path, "label-errors", counts={"rows_doubted": 1})
    assert ("a (0.0100)" in shown(tmp_path)) == is_read


@pytest.mark.parametrize(("label", "is_told"), [("1", False), ("neg", True)])
def test_labels_of_scored_rows_count_if_the_model_knows_them(label, is_told, tmp_path):
    rows = [
        {"text": "x", "label": label, "predicted_label": name, "predicted_score": 0.9}
        for name in ("pos", "neg")
    ]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = {"text": "text", "id": "text", "added": ["predicted_label", "predicted_score"]}
    finished(table, "score", columns=columns)
    assert ("labeled so" in shown(table)) == is_told


def test_a_table_of_words_shows_its_first_lines(tmp_path):
    (tmp_path / "scored.conll").write_text("Rome B-place\nrests O\n")
    finished(tmp_path / "scored.conll", "score")
    assert "Rome B-place" in shown(tmp_path / "scored.conll")


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, "0.0%"), (2e-5, "&lt;0.01%"), (5e-4, "0.05%"), (0.5, "50%")]
)
def test_a_share_that_is_there_is_not_written_as_none(value, expected):
    assert f"<span>{expected}</span>" in table_cell(value, "share")


FAR = "a text farther from the training rows (2, beyond 1.5) than 0.99 of the evaluation rows"


@pytest.mark.parametrize(
    ("below", "beyond", "expected"),
    [
        (0.8, None, "3 predictions left out, of rows with a probability below 0.8."),
        (0.0, 1.5, f"3 predictions left out, of rows with {FAR}."),
        (0.8, 1.5, f"3 predictions left out, of rows with a probability below 0.8, or {FAR}."),
        (None, None, ""),
    ],
)
def test_the_page_says_why_predictions_are_left_out(below, beyond, expected):
    abstention = None
    if below is not None:
        abstention = Abstention(fields=("label", "score"), below=below, beyond=beyond)
    share = None if beyond is None else 0.99
    config = SimpleNamespace(output="scored.csv", model="model", abstain_far=share)
    plan = SimpleNamespace(tables=(), explains=False, marked=None, abstention=abstention)
    sums = Counter({Fact.ABSTAINED: 3, Fact.FAR: 2})
    counts = ScoringCounts(rows_in=9, rows_out=9, rejected={}, types={}, sums=sums)
    page = page_of_scores(config, plan, counts, {}, {})
    assert expected in page
    assert ("left out" in page) == bool(expected)

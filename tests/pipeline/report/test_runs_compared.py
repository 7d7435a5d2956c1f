"""The best of several runs, and the rows that changed."""

import json

import pytest
from behavior.pages import check_page

from bert_tf.base.errors import InputError
from pipeline.outputs.manifest import write_manifest
from pipeline.report.runs import read_runs
from pipeline.report.runs_page import runs_page

TASK = {
    "task": "classification", "labels": ["a", "b"], "max_seq_length": 8,
    "columns": {"text": "text", "text_pair": None, "label": "label"},
}  # fmt: skip


@pytest.fixture
def make_run(tmp_path):
    """Write a finished run that predicts labels, `labels` and `predicted` a letter a row."""

    def make(name, labels, predicted, *, metric="accuracy", value=None):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text('{"step": 1, "split": "eval", "loss": 1.0}\n')
        rows = [
            {"line": line, "label": label, "predicted_label": chosen}
            for line, (label, chosen) in enumerate(zip(labels, predicted, strict=True), start=2)
        ]
        (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if value is None:
            value = sum(map(str.__eq__, labels, predicted)) / len(labels)
        best = {"step": 1, "metric": metric, "value": value, "error": 0.01, "rows": len(labels)}
        manifest = {"command": "finetune", "config": {}, "task": TASK, "best_model": best}
        write_manifest(folder, manifest)
        return str(folder)

    return make


def shown(*paths):
    page = check_page(runs_page(read_runs(paths)))
    return page.text, " ".join(" ".join(page.text).split())


def test_the_best_is_marked_and_the_rows_that_changed_are_listed(make_run):
    labels = "ab" * 20
    worse = make_run("worse", labels, "aa" * 18 + "abab")
    better = make_run("better", labels, "ba" + labels[2:])
    text, joined = shown(worse, better)
    assert "better is the best by accuracy: 0.950 ± 0.010." in text
    assert "better (best)" in text and "★ best" in text
    table = text[text.index("Which run is best") :]
    row = table[table.index("worse") :]
    assert row[2:5] == ["the same", "17", "1"]
    changed = joined[joined.index("Right with worse, wrong with better") :]
    assert "line 2 a b a" in changed


def test_rows_are_named_by_row_and_id_and_are_the_same_if_one_run_has_no_ids(make_run, tmp_path):
    labels = "ab" * 20
    worse = make_run("worse", labels, "aa" * 18 + "abab")
    better = make_run("better", labels, "ba" + labels[2:])
    path = tmp_path / "better" / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows, start=2):
        row |= {"line": row["line"], "row": number - 1, "id": f"T-{number}"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text, joined = shown(worse, better)
    table = text[text.index("Which run is best") :]
    assert "the same" in table[: table.index("17") + 1]
    assert "line 2 (row 1, id 'T-2')" in joined


@pytest.mark.parametrize(
    ("predicted", "verdict"), [("b" + "a" * 39, "may be chance"), ("b" * 20 + "a" * 20, "clear")]
)
def test_a_difference_is_clear_beyond_two_of_its_errors(make_run, predicted, verdict):
    _, joined = shown(make_run("one", "a" * 40, "a" * 40), make_run("two", "a" * 40, predicted))
    assert f", {verdict}" in joined


def test_metrics_of_other_rows_do_not_compare(make_run):
    text, _ = shown(make_run("one", "ab", "ab"), make_run("two", "ba", "bb"))
    assert any("Not all are measured on the same rows" in each for each in text)
    assert "others" in text and not any(each.startswith("Right with one") for each in text)


def test_losses_are_better_when_they_are_lower(make_run):
    text, _ = shown(
        make_run("low", "ab", "ab", metric="loss", value=0.1),
        make_run("high", "ab", "aa", metric="loss", value=0.9),
    )
    assert "low (best)" in text


def test_runs_by_different_metrics_have_no_best(make_run):
    text, _ = shown(
        make_run("one", "ab", "ab"), make_run("two", "ab", "aa", metric="macro_f1", value=0.9)
    )
    assert "Which run is best" not in text and "★ best" not in text


def test_damaged_predictions_are_named(make_run, tmp_path):
    paths = [make_run("one", "ab", "ab"), make_run("two", "ab", "aa")]
    (tmp_path / "two" / "predictions.jsonl").write_text('{"line": 2}\n[]\n')
    with pytest.raises(InputError, match=r"predictions\.jsonl:2: is no JSON object"):
        shown(*paths)

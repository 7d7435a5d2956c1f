"""The page of runs: curves, settings, data and evaluations side by side, texts as texts."""

import json
import math
import re

import pytest
from behavior.pages import check_page

from bert_tf.base.errors import InputError, UsageError
from pipeline.outputs.inputs import fingerprint
from pipeline.outputs.manifest import describe_files, write_manifest
from pipeline.report.document import html_document
from pipeline.report.runs import COLORS, MOST_RUNS, TRAINING, read_runs
from pipeline.report.runs_page import runs_page

EVIL = "<script>alert('x')</script>"


def write_lines(folder, lines):
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def make_run(tmp_path):
    """Write a finished fine-tuning run with the page of its evaluation."""

    def make(
        name, *, learning_rate=1e-4, loss=0.5, evaluation="<section><h2>Confusion</h2></section>"
    ):
        folder = tmp_path / name
        write_lines(
            folder,
            [
                {"step": 1, "split": "train", "time": 3.0, "loss": 2.0, "learning_rate": 1e-5},
                {"step": 2, "split": "train", "time": 61.0, "loss": math.nan},
                {"step": 2, "split": "eval", "time": 62.0, "loss": loss, "accuracy": 0.75},
            ],
        )
        page = html_document("T", evaluation, command="evaluate")
        (folder / "report.html").write_text(page)
        rows = {"rows_out": 8, "rows_rejected": 1, "sequences": 8, "tokens": 100}
        write_manifest(
            folder,
            {
                "command": "finetune",
                "config": {"task": "classification", "learning_rate": learning_rate, "seed": 1},
                "counts": {"train": {**rows, "rows_cut": 2, "tokens_lost": 30}},
                "metrics": {"best": {"step": 2, "loss": loss}},
                "best_model": {"step": 2, "epoch": 1.0, "metric": "loss", "value": loss},
                "outputs": describe_files(folder, {}),
                "notes": [EVIL],
            },
        )
        return str(folder)

    return make


def page_of(*paths):
    html = runs_page(read_runs(paths))
    return html, check_page(html)


def test_runs_are_side_by_side(make_run):
    html, page = page_of(make_run("slow"), make_run("fast", learning_rate=1e-3, loss=0.25))
    shown = " ".join(page.text)
    assert "Settings that differ" in shown and "0.0001" in page.text and "0.001" in page.text
    assert "seed" not in page.text, "both have the same"
    assert "slow, fast" in page.text
    assert "epoch 1 (step 2), with the lowest loss: 0.2500" in page.text
    assert "12.5" in page.text and "2 (25.0%)" in page.text, "tokens per sequence, rows cut"
    for heading in ("loss", "accuracy", "learning_rate", "Optimization"):
        assert heading in page.text
    assert page.text.count("Confusion") == 2, "the evaluation of each"
    assert page.elements.count("input") == 2, "each can be hidden"
    values = re.findall(r"<title>(.+?)</title></circle>", html)
    assert {"slow, eval, 2: 0.5", "fast, eval, 2: 0.25"} <= set(values)
    assert "nan" not in re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    assert "<script" not in html and f"slow: {EVIL}" in page.text


def test_curves_of_a_report_are_not_shown_twice(make_run):
    training = f"{TRAINING}<h2>Training</h2></section>"
    run = make_run("run", evaluation=f"<section><h2>Confusion</h2></section>{training}")
    _, page = page_of(run)
    assert "Confusion" in page.text and "Training" not in page.text


def test_settings_that_only_some_runs_have_do_not_differ(make_run, tmp_path):
    write_lines(tmp_path / "other", [{"step": 1, "split": "train", "loss": 7.0}])
    (tmp_path / "other" / "config.yaml").write_text(
        "train: {output: other, seed: 2, learning_rate: 1.0e-4, xla: off}\n"
    )
    _, page = page_of(make_run("run"), str(tmp_path / "other"))
    table = page.text[page.text.index("Settings that differ") : page.text.index("Shown runs")]
    assert table[-4:-1] == ["seed", "1", "2"] and "xla" not in page.text


def test_runs_that_do_not_differ_have_no_empty_table(make_run):
    _, page = page_of(make_run("one"), make_run("other"))
    begin = page.text.index("Settings that differ")
    assert page.text[begin + 1] == "None: these runs have the same settings."
    assert "setting" not in page.text[begin : begin + 4]


def test_one_run_shows_what_it_changes(make_run):
    _, page = page_of(make_run("run"))
    assert "Settings" in page.text and "learning_rate" in page.text


def test_an_evaluation_page_that_is_not_the_run_s_is_refused(make_run, tmp_path):
    path = make_run("run")
    (tmp_path / "run" / "report.html").write_text(f"</h1>\n{EVIL}</main></body></html>")
    with pytest.raises(InputError, match=r"report.html: has changed since it was written"):
        page_of(path)


def test_an_unfinished_pretraining_shows_its_curves_beside_frequencies(tmp_path):
    write_lines(
        tmp_path / "run",
        [
            {"step": 5, "split": "train", "mlm_loss": 7.0},
            {"step": 10, "split": "eval", "mlm_loss": 6.5, "unigram_entropy": 6.25},
        ],
    )
    (tmp_path / "run" / "config.yaml").write_text("train: {output: run, steps: 20}\n")
    html, page = page_of(str(tmp_path / "run"))
    assert "not finished" in page.text and 'class="curve level of-0"' in html
    assert "run, frequencies" in page.text and "unigram_entropy" not in page.text
    row = page.text[page.text.index("run, frequencies") :]
    assert row[1:5] == ["6.25"] * 4


@pytest.mark.slow  # reads records, with TensorFlow
def test_records_are_shown_while_they_are_what_the_run_read(tmp_path):
    from behavior.pretraining_runs import write_data

    data = write_data(tmp_path / "data")
    write_lines(tmp_path / "run", [{"step": 1, "split": "train", "mlm_loss": 7.0}])
    inputs = [{"key": "data", **fingerprint(data)}]
    write_manifest(tmp_path / "run", {"command": "train", "config": {}, "inputs": inputs})
    _, page = page_of(str(tmp_path / "run"))
    assert "Tokens per record of data" in page.text and "30 entries" in page.text
    assert "12 tokens" in page.text
    manifest = json.loads((data / "manifest.json").read_text())
    del manifest["checksum"]
    write_manifest(data, {**manifest, "counts": {"documents": 1}})
    _, page = page_of(str(tmp_path / "run"))
    assert "its records are gone or were made again" in page.text
    assert "Tokens per record of data" not in page.text


def test_what_is_no_run_is_refused(make_run, tmp_path):
    run = make_run("run")
    with pytest.raises(UsageError, match="run: is given twice"):
        read_runs([run, run])
    with pytest.raises(UsageError, match="9 runs: a page has colors for 8"):
        read_runs([run] * 9)
    with pytest.raises(UsageError, match="nothing: no such folder; give the output of train"):
        read_runs([str(tmp_path / "nothing")])
    with pytest.raises(UsageError, match="is a file"):
        read_runs([f"{run}/metrics.jsonl"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty: is not a run; give the output of train"):
        read_runs([str(tmp_path / "empty")])
    (tmp_path / "empty" / "config.yaml").write_text("train: {output: empty}\n")
    with pytest.raises(UsageError, match="empty: has no metrics yet"):
        read_runs([str(tmp_path / "empty")])


def test_runs_of_one_name_are_told_apart_by_their_paths(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        write_lines(tmp_path / place / "run", [{"step": 1, "split": "train", "loss": 1.0}])
        (tmp_path / place / "run" / "config.yaml").write_text("train: {output: run}\n")
    paths = [str(tmp_path / place / "run") for place in ("a", "b")]
    assert [run.name for run in read_runs(paths)] == ["a/run", "b/run"]


def luminance(color):
    """https://www.w3.org/TR/WCAG21/#dfn-relative-luminance"""
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_colors_have_the_contrast_of_text():
    """WCAG 2.1, 1.4.3 (AA): 4.5 to 1, on the grounds of the page."""
    light, dark = re.findall(r"--ground: (#\w+);", html_document("T", "", command="c"))
    for ground, colors in zip(("#ffffff", dark), zip(*COLORS, strict=True), strict=True):
        assert light == "#fff" and len(colors) == len(set(colors)) == MOST_RUNS
        for color in colors:
            low, high = sorted((luminance(color), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, color

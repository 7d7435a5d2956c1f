"""The first lines of a run's page."""

import json

import pytest
from behavior.pages import check_page

from pipeline.outputs.manifest import write_manifest
from pipeline.report.page import artifact_page
from pipeline.report.run_page import verdict

BASELINE = {
    "metric": "accuracy", "value": 0.786, "error": 0.018, "baseline": 0.188,
    "prediction": "always predicting 'ENTY'", "is_better": True,
}  # fmt: skip
BEST = {
    "step": 342,
    "epoch": 2.0,
    "metric": "accuracy",
    "value": 0.786,
    "error": 0.018,
    "rows": 500,
}


@pytest.fixture
def folder(tmp_path):
    lines = [
        {"step": step, "split": split, "time": 7.0, "loss": 1.0 / step, "accuracy": 0.5}
        for step in (1, 2)
        for split in ("train", "eval")
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = {
        "command": "finetune",
        "config": {"task": "classification", "seed": 3},
        "counts": {"steps": 684, "train": {"rows_out": 5452}, "eval": {"rows_out": 500}},
        "metrics": {"best": {"step": 342, "accuracy": 0.786, "loss": 0.6}, "train": {"time": 75.0}},
        "best_model": BEST,
        "baseline": BASELINE,
        "versions": {"numpy": "2.0"},
    }
    write_manifest(tmp_path, manifest)
    return tmp_path


def test_the_best_metric_comes_first_and_raw_keys_are_folded(folder):
    page = check_page(artifact_page(str(folder), samples=1))
    shown = " ".join(" ".join(page.text).split())
    verdict = "Accuracy 0.786 ± 0.018, 500 rows: better than always predicting 'ENTY' (0.188)."
    assert verdict in shown
    for tile in ("accuracy 0.786 ± 0.018", "best model step 342 of 684", "0:01:15", "5,452"):
        assert tile in shown
    assert shown.index(verdict) < shown.index("Loss and metrics") < shown.index("Settings (2)")
    assert ("class", "chose") in page.attributes
    # Curves of training and evaluation.
    curves = [value for name, value in page.attributes if name == "class" and "curve" in value]
    assert "curve train of-0" in curves and "curve eval of-0" in curves


@pytest.mark.parametrize(
    ("manifest", "shown"),
    [
        ({"baseline": {**BASELINE, "is_better": False}}, "Accuracy 0.786 ± 0.018: no better than"),
        ({"baseline": {**BASELINE, "is_better": False}, "notes": ["of no use"]}, None),
        ({"metrics": {"eval": {"mlm_loss": 5.0, "unigram_entropy": 6.5}}}, "1.50 below the"),
        ({"metrics": {"eval": {"mlm_loss": 7.0, "unigram_entropy": 6.5}}}, "no better than"),
        ({"metrics": {"eval": {"loss": 1.0}}}, None),
        ({}, None),
    ],
)
def test_a_run_is_compared_with_a_model_that_ignores_its_input(manifest, shown):
    found = verdict(manifest)
    assert found is None if shown is None else shown in found

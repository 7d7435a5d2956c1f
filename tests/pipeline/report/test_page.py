"""The page of an artifact is a page like the others; see `test_artifact` for what it says."""

import json

import pytest
from behavior.pages import check_page

from pipeline.outputs.manifest import write_manifest
from pipeline.report.page import artifact_page
from pipeline.report.records import ShownToken
from pipeline.report.records_page import _segment_html


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
    from pretraining_runs import write_data

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

"""The use that `score` makes of the profile of an exported model."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from behavior.scoring_runs import write_run

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig, RunnerConfig, ScoreConfig
from bert_tf.engines.saved_model import SavedModelEngine
from bert_tf.tasks.profile.profile import PROFILE, EvaluatedRows, Profile, read_profile
from pipeline.jobs import exporting, scoring
from pipeline.outputs.job_spec import RunOptions

pytestmark = pytest.mark.slow  # exports a model, and scores with worker processes


def evaluation(rows: int = 400) -> EvaluatedRows:
    """Rows of which those with a probability of 0.7 or more are right."""
    p = np.linspace(0.5, 1.0, rows)
    gold = np.where(p >= 0.7, 0, 1)
    gold[::2] = 0
    return EvaluatedRows.of(("good", "bad"), gold, np.zeros(rows, int), np.stack([p, 1 - p], 1))


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    place = write_run(tmp_path_factory.mktemp("runs") / "run")
    Profile(evaluation=evaluation()).write(place / "best")
    output = place.parent / "model"
    options = RunOptions(console=Console(io.StringIO()))
    exporting.run(ExportConfig(run=str(place), output=str(output)), options)
    return output


@pytest.fixture
def texts(tmp_path) -> list[str]:
    found = ["good film", "bad", "red blue red", "film film", "blue good bad"]
    (tmp_path / "new.csv").write_text("body\n" + "".join(f"{text}\n" for text in found))
    return found


def score_only(model: Path, folder: Path, name: str, **values):
    """Return the manifest, and the console's output."""
    values = {
        "model": str(model),
        "input": [str(folder / "new.csv")],
        "output": str(folder / name),
        "engine": "tensorflow",
        "precision": "float32",
        "block_rows": 2,
        **values,
    }
    stream = io.StringIO()
    options = RunOptions(console=Console(stream))
    manifest = scoring.run(build_section(ScoreConfig, values), RunnerConfig(), options)
    return manifest, stream.getvalue()


def score(model: Path, folder: Path, name: str = "scored.csv", **values):
    """Return the manifest, the rows of the output file, and the console's output."""
    manifest, shown = score_only(model, folder, name, **values)
    with (folder / name).open(newline="") as rows:
        found = list(csv.DictReader(rows)) if name.endswith("csv") else list(map(json.loads, rows))
    return manifest, found, shown


def test_a_threshold_is_chosen_by_the_rows_of_evaluation(model, texts, tmp_path):
    manifest, rows, shown = score(model, tmp_path, target_accuracy=0.95)
    below = manifest["threshold"]["below"]
    assert below == pytest.approx(0.7, abs=0.06)
    assert manifest["threshold"]["accuracy"] >= 0.95
    assert f"threshold: {below:g}, which " in shown
    scores = SavedModelEngine(model).predict({"text": texts})["predicted_score"]
    for row, value in zip(rows, scores.tolist(), strict=True):
        assert bool(row["predicted_label"]) == (round(value, 6) >= below)


def test_models_of_earlier_releases_score_but_for_what_needs_a_profile(model, texts, tmp_path):
    import shutil

    old = shutil.copytree(model, tmp_path / "old")
    (old / PROFILE).unlink()
    sums = (old / "SHA256SUMS").read_text().splitlines(keepends=True)
    (old / "SHA256SUMS").write_text("".join(line for line in sums if PROFILE not in line))
    assert read_profile(old) is None
    assert len(score(old, tmp_path)[1]) == len(texts)
    with pytest.raises(UsageError, match=r"--target-accuracy: .* export again"):
        score(old, tmp_path, "again.csv", target_accuracy=0.95)


@pytest.mark.parametrize("name", ["sets.csv", "sets.jsonl"])
def test_sets_of_labels_are_added_and_may_be_renamed(model, texts, tmp_path, name):
    rename = () if name.endswith("csv") else ("predicted_label_set=likely",)
    manifest, rows, shown = score(model, tmp_path, name, coverage=0.9, rename=rename)
    least = manifest["label_sets"]["least_probability"]
    predicted = SavedModelEngine(model).predict({"text": texts})
    for row, label, probabilities in zip(
        rows,
        predicted["predicted_label"].tolist(),
        predicted["probabilities"].round(6).tolist(),
        strict=True,
    ):
        found = json.loads(row["predicted_label_set"]) if not rename else row["likely"]
        pairs = zip(("good", "bad"), probabilities, strict=True)
        assert set(found) == {each for each, value in pairs if value >= least[each]}
        assert not found or found[0] == label
    assert "label sets: " in shown
    assert manifest["metrics"]["mean_label_set"] >= 0


def test_too_few_rows_for_sets_by_label_are_refused(model, texts, tmp_path):
    with pytest.raises(UsageError, match=r"needs 999 evaluation rows, and the model has 400"):
        score(model, tmp_path, coverage=0.999)
    with pytest.raises(
        UsageError, match=r"--coverage-by-label: a coverage of 0.99 needs 99 .*'bad'"
    ):
        score(model, tmp_path, coverage=0.99, coverage_by_label=True)


def test_rows_to_label_next_are_the_same_in_any_blocks(model, tmp_path):
    words = ["good", "bad", "film", "red", "blue"]
    texts = [" ".join(words[(n // 5**k) % 5] for k in range(4)) for n in range(200)]
    (tmp_path / "new.csv").write_text(
        "n,body\n" + "".join(f"{n},{t}\n" for n, t in enumerate(texts))
    )
    outputs = []
    for name, block_rows in (("next.csv", 500), ("again.csv", 7)):
        manifest, rows, shown = score(model, tmp_path, name, label_next=12, block_rows=block_rows)
        assert len(rows) == 12
        assert (manifest["counts"]["rows_out"], manifest["counts"]["rows_rejected"]) == (12, 0)
        assert "to label next: 12 rows, chosen among the 200 least certain" in shown
        outputs.append([row["n"] for row in rows])  # the last digits of scores may differ
    assert outputs[0] == outputs[1]
    assert {row["body"] for row in rows} <= set(texts)


def test_rows_to_label_next_go_to_one_file(model, tmp_path):
    with pytest.raises(UsageError, match="label_next: chooses among the rows of all inputs"):
        score(model, tmp_path, "next.parquet", label_next=5)


@pytest.mark.parametrize("name", ["why.csv", "why.tsv", "why.jsonl", "why.parquet"])
@pytest.mark.parametrize("which", ["first", "uncertain"])
def test_rows_are_explained_by_their_words(model, texts, tmp_path, name, which):
    import pyarrow.parquet as pq

    if name.endswith("csv"):
        _, rows, shown = score(model, tmp_path, name, explain=2, explain_rows=which)
        assert "explained: 2 rows, " in shown
        found = [row["explanation"] for row in rows]
    else:
        values = {"explain": 2, "explain_rows": which}
        if name.endswith("jsonl"):
            found = [row["explanation"] for row in score(model, tmp_path, name, **values)[1]]
        else:
            score_only(model, tmp_path, name, **values)
            path = tmp_path / name
            if name.endswith("parquet"):
                found = pq.read_table(path)["explanation"].to_pylist()
            else:
                found = [line.split("\t")[-1] for line in path.read_text().splitlines()[1:]]
    explained = [number for number, each in enumerate(found) if each]
    assert len(explained) == 2
    if which == "first":
        assert explained == [0, 1]
    for number in explained:
        (entry,) = found[number] if isinstance(found[number], list) else json.loads(found[number])
        assert [word["word"] for word in entry["words"]] == texts[number].split()
        total = sum(word["share"] for word in entry["words"])
        assert total == pytest.approx(entry["logit"] - entry["baseline"], rel=0.01, abs=1e-4)


def test_a_page_shows_labels_probabilities_and_rows(model, texts, tmp_path):
    manifest, _, _ = score(model, tmp_path, "page.csv", explain=2, explain_rows="uncertain")
    page = (tmp_path / "page.csv.report.html").read_text()
    for title in ("Predicted labels", "Probability of the prediction", "Explained rows"):
        assert title in page
    assert "Least certain rows" in page
    assert 'style="--share:1.00"' in page
    assert {"page.csv", "page.csv.report.html"} <= {each["path"] for each in manifest["outputs"]}


def test_drift_is_in_the_manifest_and_an_error_on_request(model, texts, tmp_path, monkeypatch):
    from pipeline.cli.command import complaint_of_run

    (tmp_path / "new.csv").write_text("body\n" + "red blue film good bad\n" * 400)
    for fails in (False, True):
        values = {"fail_on_drift": fails, "block_rows": 100}
        manifest, _, shown = score(model, tmp_path, f"drift-{fails}.csv", **values)
        (entry,) = manifest["drift"]
        assert not entry["is_like_training"]
        assert entry["rows"] == 400
        assert "warning: drift: " in shown
        assert "differs from the training rows" in shown
        config = build_section(
            ScoreConfig,
            {"model": "m", "input": ["i"], "output": "o.csv", "fail_on_drift": fails},
        )
        complaint = complaint_of_run(manifest, config, RunOptions(console=Console(io.StringIO())))
        assert (complaint is not None) == fails
        assert complaint is None or complaint.exit_code == 1

"""A task that only the registry has heard of goes the whole way of those that are built in."""

import csv
import json
import sys

import pytest
from behavior.toy_regression import REGRESSION
from click.testing import CliRunner

from bert_tf.tasks.registry import TASKS
from pipeline.cli.main import bert_pipeline

NUMBERS = {"good": 30.0, "fine": 10.0, "bad": -20.0}
TRAINING = [
    (f"{before} {word} {after}", number)
    for before in ("the", "a", "it is", "was")
    for word, number in NUMBERS.items()
    for after in ("film", "city")
]


@pytest.fixture
def toy(monkeypatch):
    """Yield the line in the registry.

    The command is made again, as in a process that starts with it.
    """
    monkeypatch.setitem(TASKS, REGRESSION.name, REGRESSION)
    monkeypatch.delitem(sys.modules, "pipeline.cli.jobs", raising=False)
    yield
    sys.modules.pop("pipeline.cli.jobs", None)


@pytest.mark.slow
def test_a_task_needs_a_folder_and_a_line_in_the_registry(toy, run_command, tmp_path, small_model):
    rows = "".join(f"{text},{number}\n" for text, number in TRAINING)
    (tmp_path / "train.csv").write_text(f"body,label\n{rows * 2}")
    rated = "was good city,30\na bad film,-20\nthe fine city,10\n"
    (tmp_path / "dev.csv").write_text(f"body,label\n{rated}")
    (tmp_path / "test.csv").write_text(f"review,points\n{rated}")
    (tmp_path / "new.csv").write_text("review\nthe good city\nthe bad film\n")

    run_command(
        f"finetune toy-regression --train train.csv --eval dev.csv --init {small_model} "
        "--output run --text-column body --target-scale 10 --epochs 20 --batch-size 8 "
        "--learning-rate 3e-3 --set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    columns = "--column body=review --column label=points"
    run_command(f"evaluate --model run --data test.csv --output measured {columns}")
    run_command("export --run run --output model")
    run_command(f"evaluate --model model --data test.csv --output measured-export {columns}")
    run_command("score --model model --input new.csv --output scored.csv --column body=review")

    best = json.loads((tmp_path / "run" / "manifest.json").read_text())["metrics"]["best"]
    measured = json.loads((tmp_path / "measured" / "metrics.json").read_text())
    exported = json.loads((tmp_path / "measured-export" / "metrics.json").read_text())
    assert best["r2"] > 0.9
    assert measured["r2"] == pytest.approx(best["r2"], abs=1e-4)
    assert exported["r2"] == pytest.approx(best["r2"], abs=1e-4)
    predictions = (tmp_path / "measured" / "predictions.jsonl").read_text().splitlines()
    assert [json.loads(row)["label"] for row in predictions] == [30, -20, 10]
    with (tmp_path / "scored.csv").open() as stream:
        scored = {row["review"]: float(row["predicted_value"]) for row in csv.DictReader(stream)}
    assert scored["the good city"] == pytest.approx(30, abs=5)
    assert scored["the bad film"] == pytest.approx(-20, abs=5)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\n---\n\n# Text regressor\n" in card
    assert "- trained on the columns `body` (text) and `label` (label)\n" in card
    assert "- numbers from the column `label`, divided by 10\n" in card
    assert "| r2 | " in card


def test_the_help_has_it(toy):
    runner = CliRunner()
    assert "toy-regression  " in runner.invoke(bert_pipeline, ["finetune", "--help"]).output
    own = runner.invoke(bert_pipeline, ["finetune", "toy-regression", "--help"]).output
    assert "--target-scale" in own
    assert "--doc-stride" not in own

"""Regression by the commands, from pairs with numbers to scored rows."""

import csv
import json

import pytest
from behavior.tasks import check_exported_predictions

pytestmark = pytest.mark.slow  # trains, exports and scores

RATED = {"good": 30, "bad": -20, "fine": 10, "red": 0, "blue": -5}
PAIRS = [
    (f"the {one} film", f"a {other} film", 500 + RATED[one] + RATED[other])
    for one in RATED
    for other in RATED
]


def test_from_pairs_to_scored_rows(run_command, tmp_path, small_model):
    lines = [f"{one}\t{other}\t{number}\n" for one, other, number in PAIRS]
    rejected = "a\tb\tunknown\n"
    (tmp_path / "train.tsv").write_text("".join(["first\tsecond\tscore\n", *(lines * 3), rejected]))
    (tmp_path / "dev.tsv").write_text("".join(["first\tsecond\tscore\n", *lines]))
    (tmp_path / "new.jsonl").write_text('{"first": "the good film", "second": "a good film"}\n')
    run_command(
        "finetune regression --train train.tsv --eval dev.tsv --output run "
        f"--init {small_model} --text-column first --text-pair-column second --label-column score "
        "--epochs 20 --max-seq-length 16 --batch-size 8 --learning-rate 3e-3 "
        "--best-metric spearman "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run_command("evaluate --model run --data dev.tsv --output measured")
    run_command("export --run run --output model")
    run_command("evaluate --model model --data dev.tsv --output measured-export")
    check_exported_predictions(tmp_path / "measured", tmp_path / "measured-export")
    run_command("score --precision float32 --model model --input new.jsonl --output scored.jsonl")
    run_command("score --precision float32 --model model --input dev.tsv --output scored.csv")

    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["best_model"]["metric"] == "spearman"
    best = manifest["metrics"]["best"]
    assert best["pearson"] > 0.9
    for folder in ("measured", "measured-export"):
        metrics = json.loads((tmp_path / folder / "metrics.json").read_text())
        for name in ("pearson", "spearman", "r2", "mse", "rmse", "mae"):
            assert metrics[name] == pytest.approx(best[name], rel=1e-3), name
    scored = json.loads((tmp_path / "scored.jsonl").read_text())
    assert scored["predicted_value"] == pytest.approx(560, abs=15)
    with (tmp_path / "scored.csv").open() as stream:
        values = [float(row["predicted_value"]) for row in csv.DictReader(stream)]
    predictions = (tmp_path / "measured" / "predictions.jsonl").read_text().splitlines()
    assert values == pytest.approx(
        [json.loads(row)["predicted_value"] for row in predictions], rel=1e-4
    )
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\n---\n\n# Text regressor\n" in card
    assert "- numbers of the training rows: mean " in card
    assert "| pearson | " in card

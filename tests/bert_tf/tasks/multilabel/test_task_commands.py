"""Multi-label classification by the commands, from lists of labels to scored rows."""

import csv
import json

import pytest
from behavior.tasks import check_exported_predictions

pytestmark = pytest.mark.slow  # trains, exports and scores

ROWS = [
    (f"{before} {one} {what}", [label for label in (sense, topic) if label])
    for before in ("the", "a", "it is")
    for one, sense in (("good", "praise"), ("bad", "blame"), ("red", None))
    for what, topic in (("film", "film, or play"), ("city", None))
]


def test_from_lists_to_scored_rows(run_command, tmp_path, small_model):
    lines = [json.dumps({"text": text, "tags": tags}) + "\n" for text, tags in ROWS]
    (tmp_path / "train.jsonl").write_text("".join(lines * 4))
    (tmp_path / "dev.jsonl").write_text(
        "".join([*lines, '{"text": "a", "tags": ["unheard of"]}\n'])
    )
    (tmp_path / "new.csv").write_text("id,text\n1,the good film\n2,it is red city\n")
    run_command(
        "finetune multilabel --train train.jsonl --eval dev.jsonl --output run "
        f"--init {small_model} --label-column tags --epochs 12 --max-seq-length 16 "
        "--batch-size 8 --learning-rate 3e-3 --thresholds per-label "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run_command("evaluate --model run --data dev.jsonl --output measured")
    run_command("export --run run --output model")
    run_command("evaluate --model model --data dev.jsonl --output measured-export")
    check_exported_predictions(tmp_path / "measured", tmp_path / "measured-export")
    run_command("score --precision float32 --model model --input new.csv --output scored.csv")
    run_command("score --precision float32 --model model --input new.csv --output scored.jsonl")

    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["best_model"]["metric"] == "micro_f1"
    best = manifest["metrics"]["best"]
    assert best["micro_f1"] == 1.0
    settings = json.loads((tmp_path / "run" / "best" / "task.json").read_text())
    assert settings["labels"] == ["blame", "film, or play", "praise"]
    assert len(settings["decision_thresholds"]) == 3
    for folder in ("measured", "measured-export"):
        metrics = json.loads((tmp_path / folder / "metrics.json").read_text())
        for name, value in best.items():
            if name not in ("step", "loss"):
                assert metrics[name] == pytest.approx(value, rel=1e-3), name
        assert metrics["labels"]["praise"]["support"] == 6
        predictions = (tmp_path / folder / "predictions.jsonl").read_text().splitlines()
        for row, (_, tags) in zip(map(json.loads, predictions), ROWS, strict=True):
            assert row["label"] == row["predicted_labels"] == sorted(tags)
        rejects = (tmp_path / folder / "rejects.jsonl").read_text()
        assert "label is not one the model knows" in rejects

    scored = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    assert [row["predicted_labels"] for row in scored] == [["film, or play", "praise"], []]
    with (tmp_path / "scored.csv").open() as stream:
        cells = list(csv.DictReader(stream))
    for cell, row in zip(cells, scored, strict=True):
        for name in ("predicted_labels", "predicted_scores"):
            assert json.loads(cell[name]) == row[name]
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\n---\n\n# Multi-label text classifier\n" in card
    assert "- labels: `blame`, `film, or play`, `praise`\n" in card
    assert "- a row has the labels whose probability, by a sigmoid, is at least " in card

"""Question answering by the commands, from SQuAD 2.0 to scored rows with their rankings."""

import csv
import json

import pytest
from behavior.tasks import check_exported_predictions

pytestmark = pytest.mark.slow  # trains, exports and scores

FILLER = "it was a very , very fine film . " * 3
ANSWERS = {"france": "Paris", "peru": "Lima", "china": "Shanghai"}


def squad(times=4):
    """A question with an answer and one without for each context, some times by other ids."""
    paragraphs = []
    for country, city in ANSWERS.items():
        context = f"{FILLER}{city} is the capital of {country} . {FILLER}"
        where = {"text": city, "answer_start": context.index(city)}
        asked = {f"what is the capital of {country} ?": [where], f"what is {country} red ?": []}
        qas = [
            {"id": f"{each} {number}", "question": each, "answers": listed}
            for each, listed in asked.items()
            for number in range(times)
        ]
        paragraphs.append({"context": context, "qas": qas})
    return {"data": [{"title": "t", "paragraphs": paragraphs}]}


def test_from_questions_to_scored_rows(run_command, tmp_path, small_model):
    (tmp_path / "train.json").write_text(json.dumps(squad(times=1)))
    (tmp_path / "eval.json").write_text(json.dumps(squad()))
    run_command(
        "finetune qa --train train.json --eval eval.json --output run "
        f"--init {small_model} --epochs 40 --max-seq-length 32 --doc-stride 8 "
        "--max-query-length 12 --batch-size 8 --learning-rate 3e-3 "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run_command("evaluate --model run --data eval.json --output measured")
    run_command("export --run run --output model")
    run_command("evaluate --model model --data eval.json --output measured-export")
    check_exported_predictions(tmp_path / "measured", tmp_path / "measured-export")
    extra = "--extra-column predicted_nbest --extra-column predicted_null_odds --precision float32"
    run_command("score --model model --input eval.json --output plain.csv")
    run_command(f"score --model model --input eval.json --output scored.csv {extra}")
    run_command(f"score --model model --input eval.json --output scored.jsonl {extra}")

    best = json.loads((tmp_path / "run" / "manifest.json").read_text())["metrics"]["best"]
    assert best["f1"] == best["best_f1"] == 100.0
    task = json.loads((tmp_path / "model" / "task.json").read_text())
    assert task["null_score_diff_threshold"] == best["null_threshold"] > best["best_f1_thresh"]
    measured = []
    for folder in ("measured", "measured-export"):
        metrics = json.loads((tmp_path / folder / "metrics.json").read_text())
        for name in set(best) - {"step", "loss"}:
            assert metrics[name] == pytest.approx(best[name], abs=1e-3), name
        lines = (tmp_path / folder / "predictions.jsonl").read_text().splitlines()
        measured.append([json.loads(line) for line in lines])
    for ours, exported in zip(*measured, strict=True):
        for name in ("predicted_answer", "predicted_start", "predicted_end"):
            assert ours[name] == exported[name]
        assert [entry["text"] for entry in ours["predicted_nbest"]] == [
            entry["text"] for entry in exported["predicted_nbest"]
        ]

    scored = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    with (tmp_path / "scored.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with (tmp_path / "plain.csv").open(newline="") as stream:
        assert list(next(csv.DictReader(stream))) == [*rows[0]][:-2]
    assert [*rows[0]][-2:] == ["predicted_null_odds", "predicted_nbest"]
    for value, row, prediction in zip(scored, rows, measured[1], strict=True):
        assert row["predicted_answer"] == value["predicted_answer"]
        assert value["predicted_answer"] == "".join(prediction["answers"])
        assert json.loads(row["predicted_nbest"]) == value["predicted_nbest"]
        assert value["predicted_nbest"] == prediction["predicted_nbest"]
        assert float(row["predicted_null_odds"]) == value["predicted_null_odds"]
    card = (tmp_path / "model" / "README.md").read_text()
    assert "tuned for F1 on evaluation rows" in card
    assert "| null_threshold | " in card

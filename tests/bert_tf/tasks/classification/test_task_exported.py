"""An exported classifier predicts what its run does, long texts and calibration included."""

import itertools
import json

import pytest
from behavior.tasks import check_exported_predictions

WORDS = (
    ("good", "bad", "fine"),
    ("film", "city", "china"),
    ("was", "is not", "is very"),
    ("red", "of"),
)
ROWS = [
    {"text": " ".join(words) + " . it is red" * (number % 9), "label": words[0]}
    for number, words in enumerate(itertools.product(*WORDS))
]


@pytest.mark.slow  # trains and exports
@pytest.mark.parametrize("long_texts", ["head", "windows"])
def test_predictions_equal_those_of_the_run(run_command, tmp_path, small_model, long_texts):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    run_command(
        f"finetune classification --train rows.jsonl --eval rows.jsonl --init {small_model} "
        f"--output run --epochs 2 --max-seq-length 16 --batch-size 8 --learning-rate 3e-3 "
        f"--long-texts {long_texts} --calibration temperature "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run_command("evaluate --model run --data rows.jsonl --output measured")
    run_command("export --run run --output model")
    run_command("evaluate --model model --data rows.jsonl --output measured-export")
    check_exported_predictions(tmp_path / "measured", tmp_path / "measured-export")
    labels = {
        json.loads(line)["predicted_label"]
        for line in (tmp_path / "measured" / "predictions.jsonl").read_text().splitlines()
    }
    assert len(labels) > 1

"""The job `label-errors`: its files and counts, through the command line."""

import csv
import json

import pytest
from behavior.finetuning_runs import NO_DROPOUT, VOCAB
from behavior.small_models import write_encoder

from pipeline.cli.main import main

pytestmark = pytest.mark.slow  # trains a model per fold


@pytest.fixture
def command(tmp_path, monkeypatch):
    write_encoder(tmp_path / "init", vocab=VOCAB, seed=5, initializer_range=0.1, **NO_DROPOUT)
    rows = [f"{a} {word} {b},{word}" for a in VOCAB[7:] for b in VOCAB[7:] for word in VOCAB[5:7]]
    rows[3] = rows[3].replace(",bad", ",good")
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows, ",good", ""]))
    monkeypatch.chdir(tmp_path)
    return [
        *("label-errors", "classification", "--train", "rows.csv", "--init", "init"),
        *("--output", "doubted", "--folds", "2", "--epochs", "30", "--batch-size", "4"),
        *("--max-seq-length", "16", "--learning-rate", "3e-3"),
        *("--set", "label_errors.precision=float32"),
    ]


def run(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code, capsys.readouterr()


def test_what_is_written(command, tmp_path, capsys):
    code, output = run([*command, "--json"], capsys)
    assert code == 0, output.err
    manifest = json.loads(output.out)
    counts = manifest["counts"]
    assert (counts["rows_in"], counts["rows_checked"], counts["rows_rejected"]) == (19, 18, 1)
    with (tmp_path / "doubted/label_errors.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert (rows[0]["line"], rows[0]["label"], rows[0]["suggested_label"]) == ("5", "good", "bad")
    probabilities = [float(row["label_probability"]) for row in rows]
    assert probabilities == sorted(probabilities)
    assert counts["rows_doubted"] == len(rows)
    assert f"{len(rows)} doubtful label" in output.err and " in 18 rows\n" in output.err
    metrics = json.loads((tmp_path / "doubted/metrics.json").read_text())
    predictions = (tmp_path / "doubted/predictions.jsonl").read_text().splitlines()
    right = [row["label"] == row["predicted_label"] for row in map(json.loads, predictions)]
    assert metrics["accuracy"] == manifest["metrics"]["accuracy"] == pytest.approx(sum(right) / 18)
    assert not (tmp_path / "doubted/.folds").exists()

    page = (tmp_path / "doubted/report.html").read_text()
    assert "<dt>suggested</dt>" in page and "doubtful label" in page

    code, output = run(command, capsys)
    assert code == 0 and "is finished already" in output.err
    check_that_corrections_are_applied(tmp_path / "doubted/corrections.csv", len(rows), capsys)


def check_that_corrections_are_applied(corrections, number, capsys):
    """They are in the training rows of `finetune`, and counted."""
    finetune = [
        *("finetune", "classification", "--train", "rows.csv", "--init", "init"),
        *("--epochs", "1", "--batch-size", "4", "--max-seq-length", "16", "--eval-fraction", "0"),
        *("--corrections", str(corrections), "--output"),
    ]
    code, output = run([*finetune, "corrected", "--json"], capsys)
    assert code == 0, output.err
    assert f"corrections.csv: {number} label" in output.err
    keys = {each["key"] for each in json.loads(output.out)["inputs"]}
    assert "corrections" in keys
    text = corrections.read_text().replace("5,good,bad", "5,red,bad")
    corrections.write_text(text)
    code, output = run([*finetune, "again"], capsys)
    assert code == 1
    assert "is of a row with the label 'red' at line 5" in output.err


def test_too_many_rejects_end_it_before_it_trains(command, tmp_path, capsys):
    code, output = run([*command, "--max-rejects", "0"], capsys)
    assert code == 3 and "more than --max-rejects 0 allows" in output.err
    assert not (tmp_path / "doubted/.folds").exists()

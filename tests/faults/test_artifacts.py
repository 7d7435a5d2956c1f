"""Outputs of earlier versions (`_make_artifacts.py`) are read by this one."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from pipeline.cli.main import main

ARTIFACTS = Path(__file__).parents[1] / "golden" / "artifacts"
VERSIONS = sorted(path.name for path in ARTIFACTS.iterdir())
OUTPUTS = ("vocab.txt", "data", "run", "labels", "scored.csv", "vectors.parquet", "nearest.csv")


@pytest.fixture(params=VERSIONS)
def work(request, tmp_path, monkeypatch) -> Path:
    """Return a copy, in which commands write locks and logs."""
    folder = tmp_path / "work"
    shutil.copytree(ARTIFACTS / request.param, folder)
    monkeypatch.chdir(folder)
    return folder


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return ended.value.code or 0


def hits_of(path: str) -> tuple[list[dict[str, str]], list[float]]:
    with Path(path).open(newline="") as file:
        hits = list(csv.DictReader(file))
    return hits, [float(hit.pop("score")) for hit in hits]


def test_they_are_small():
    assert VERSIONS
    size = sum(path.stat().st_size for path in ARTIFACTS.rglob("*") if path.is_file())
    assert size < 300_000 * len(VERSIONS)


@pytest.mark.parametrize("command", ["verify", "inspect", "lineage"])
def test_commands_read_them(work, command, capsys):
    if command == "verify":
        assert run(command, *OUTPUTS) == 0
    else:
        for output in OUTPUTS:
            assert run(command, output) == 0, output
    assert "error" not in capsys.readouterr().err


@pytest.mark.slow
def test_an_older_run_goes_on_from_its_checkpoint(work, capsys):
    assert run("train", "--config", "train.yaml", "--steps", "6") == 0
    assert "extending" in capsys.readouterr().err
    steps = [
        json.loads(line)["step"] for line in Path("run/metrics.jsonl").read_text().splitlines()
    ]
    assert max(steps) == 6
    assert steps.count(4) == 2  # of training and evaluation, as before


@pytest.mark.slow  # loads TensorFlow
def test_a_default_that_is_chosen_now_is_that_of_the_older_run(work, capsys):
    assert run("finetune", "--config", "finetune.yaml") == 0
    assert "is finished already and its config is the same" in capsys.readouterr().err


@pytest.mark.slow
def test_older_models_records_and_vectors_are_inputs(work):
    assert run(*["export", "--run", "labels", "--output", "model", "--format", "huggingface"]) == 0
    search = "search --queries new.csv --corpus vectors.parquet --model labels --workers 1"
    assert run(*search.split(), "--top-k", "2", "--output", "again.csv") == 0
    (found, scores), (before, scores_before) = map(hits_of, ("again.csv", "nearest.csv"))
    assert found == before
    assert scores == pytest.approx(scores_before, abs=2e-6)  # processors round differently
    preprocess = "preprocess --input small.txt --vocab vocab.txt --output other --workers 1"
    assert run(*preprocess.split(), "--max-seq-length", "16") == 0

"""GLUE: its files as published, its metrics computed from the predictions, one run per task."""

import csv
import io
import json
import statistics

import glue
import numpy as np
import pytest
from behavior.finetuning_runs import NO_DROPOUT
from behavior.small_models import write_encoder
from glue import GLUE_TASKS, TaskScore, chosen_tasks, glue_score, parsed

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError

KEYS = ("label", "predicted_label")
WORDS = ["good", "bad", "film", "red", "blue"]
PAIRS = [(f"{a} {b}", f'{c} "film') for a in WORDS for b in WORDS for c in WORDS[:2]]
# As the published archives have them: CoLA without a header, no quoting anywhere.
FILES = {
    "CoLA": (None, lambda i, a, b: ["gj04", str(i % 2), "*", a]),
    "MRPC": (
        ["\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
        lambda i, a, b: [str(i % 2), "1", "2", a, b],
    ),
    "STS-B": (
        ["index", "genre", "sentence1", "sentence2", "score"],
        lambda i, a, b: [str(i), "news", a, b, f"{i % 6:.3f}"],
    ),
    "MNLI": (
        ["index", "sentence1", "sentence2", "gold_label"],
        lambda i, a, b: [str(i), a, b, ["neutral", "entailment", "contradiction"][i % 3]],
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a small model, and data as GLUE has them."""
    place = tmp_path_factory.mktemp("glue")
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    write_encoder(place / "init", vocab=vocab, seed=3, **NO_DROPOUT)
    known = {task.name: task for task in GLUE_TASKS}
    for name, (header, row) in FILES.items():
        for path in known[name].files(place / "data"):
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = [row(i, a, b) for i, (a, b) in enumerate(PAIRS)]
            lines = ["\t".join(cells) for cells in ([header] if header else []) + rows]
            path.write_text("\n".join([*lines, ""]))
    return place


def configured(place, *flags):
    return parsed(
        [
            *("--init", str(place / "init"), "--data", str(place / "data")),
            *("--output", str(place / "results"), "--epochs", "2", "--batch-size", "8"),
            *("--max-seq-length", "16", "--precision", "float32", "--learning-rate", "1e-2"),
            *flags,
        ]
    )


def predictions(folder):
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]


def f1_and_matthews(gold, found):
    """Return the textbook F1 and Matthews correlation of the label 1, in percent."""
    both = np.sum(gold & found)
    correlation = np.corrcoef(gold, found)[0, 1] if gold.std() and found.std() else 0.0
    return 100 * 2 * both / max(1, gold.sum() + found.sum()), 100 * correlation


@pytest.mark.slow  # trains five times
def test_every_task_is_measured_as_glue_does(place):
    said = io.StringIO()
    once = ["--seeds", "1", "--task", "CoLA", "--task", "STS-B", "--task", "MNLI"]
    scores = glue.run(configured(place, *once), Console(said))
    output, twice = place / "results", place / "twice"
    measured = json.loads((output / "results.json").read_text())
    assert list(measured) == ["score", "CoLA", "STS-B", "MNLI", "MNLI-mismatched"]
    assert [each.rows for each in scores] == 4 * [len(PAIRS)]

    glue.run(
        configured(place, "--seeds", "2", "--task", "MRPC", "--output", str(twice)), Console(said)
    )
    measured |= json.loads((twice / "results.json").read_text())
    runs = json.loads((twice / "MRPC" / "manifest.json").read_text())["runs"]
    assert len(runs) == len(measured["MRPC"]["f1"]) == 2
    for number, run in enumerate(runs):
        rows = predictions(twice / "MRPC" / run["path"])
        gold, found = (np.array([row[key] == "1" for row in rows]) for key in KEYS)
        assert measured["MRPC"]["f1"][number] == pytest.approx(f1_and_matthews(gold, found)[0])
        assert measured["MRPC"]["accuracy"][number] == pytest.approx(100 * np.mean(gold == found))
    [correlation] = measured["CoLA"]["matthews_correlation"]
    rows = predictions(output / "CoLA")
    gold, found = (np.array([row[key] == "1" for row in rows]) for key in KEYS)
    assert correlation == pytest.approx(f1_and_matthews(gold, found)[1])
    [mismatched] = measured["MNLI-mismatched"]["accuracy"]
    rows = predictions(output / "MNLI-mismatched")
    assert mismatched == pytest.approx(
        100 * np.mean([row["label"] == row["predicted_label"] for row in rows])
    )
    with (output / "results.csv").open() as stream:
        table = {(row["task"], row["metric"]): row for row in csv.DictReader(stream)}
    assert float(table["STS-B", "pearson"]["mean"]) == pytest.approx(
        statistics.fmean(measured["STS-B"]["pearson"]), abs=0.006
    )
    assert table["MNLI-mismatched", "accuracy"]["deviation"] == ""
    assert glue.run(configured(place, *once), Console(said)) == scores
    assert said.getvalue().count("nothing to do") == 4


def test_the_score_is_the_mean_of_tasks_and_mnli_is_one():
    found = [
        TaskScore(
            task="MRPC", name="MRPC", metrics={"f1": [80.0, 90.0], "accuracy": [75.0, 75.0]}, rows=9
        ),
        TaskScore(task="MNLI", name="MNLI", metrics={"accuracy": [60.0, 62.0]}, rows=9),
        TaskScore(task="MNLI", name="MNLI-mismatched", metrics={"accuracy": [71.0]}, rows=9),
    ]
    assert glue_score(found) == pytest.approx((80.0 + 66.0) / 2)


def test_tasks_are_those_of_the_data_and_their_files_are_there(place, tmp_path):
    assert [task.name for task in chosen_tasks(configured(place))] == list(FILES)
    assert [task.name for task in chosen_tasks(configured(place, "--task", "MNLI"))] == ["MNLI"]
    with pytest.raises(
        UsageError, match=r"--task SST: not a task of GLUE; choose from CoLA, SST-2"
    ):
        chosen_tasks(configured(place, "--task", "SST"))
    with pytest.raises(UsageError, match="RTE/train.tsv: no such file; RTE needs it"):
        chosen_tasks(configured(place, "--task", "RTE"))
    with pytest.raises(UsageError, match="no folder of a task; expected one or more of CoLA"):
        chosen_tasks(configured(place, "--data", str(tmp_path)))

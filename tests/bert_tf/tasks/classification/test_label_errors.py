"""Wrong labels: those that a small model finds among its rows, and confident learning.

The values of cleanlab were written by tests/parity/label_issues.py.
"""

from pathlib import Path

import numpy as np
import pytest

from bert_tf.config.section import build_section
from bert_tf.tasks.base.task import accept_any_rows
from bert_tf.tasks.classification import label_errors
from bert_tf.tasks.classification.label_errors import (
    confident_thresholds,
    doubtful_rows,
    find_label_errors,
)
from bert_tf.tasks.classification.options import ClassificationLabelErrorsConfig

STARTS = ("the", "a", "not the")
ENDS = ("film", "city", "red film", "blue city", "green film", "film in china", "city of france")


@pytest.fixture
def config(small_model, tmp_path):
    """Two folds of 42 rows, of which lines 6 and 30 have the other label and one is like no other.

    Line 45 repeats the text of line 2.
    """
    rows = [
        (f"{start} {label} {end}", label)
        for end in ENDS
        for label in ("good", "bad")
        for start in STARTS
    ]
    for line in (6, 30):
        text, label = rows[line - 2]
        rows[line - 2] = (text, "bad" if label == "good" else "good")
    rows += [("what is it ?", "question"), rows[0]]
    train = tmp_path / "train.csv"
    train.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return build_section(
        ClassificationLabelErrorsConfig,
        {
            "task": "classification",
            "train": str(train),
            "init": str(small_model),
            "output": str(tmp_path / "out"),
            "max_seq_length": 64,
            "folds": 2,
            "epochs": 8,
            "learning_rate": 3e-3,
            "batch_size": 8,
            "precision": "float32",
            "checkpoint_minutes": 0.0,
        },
    )


@pytest.mark.slow  # trains a model per fold
def test_wrong_labels_are_found_and_an_interrupted_search_resumes(
    config, tmp_path, quiet_console, monkeypatch
):
    folder = tmp_path / "folds"
    found = find_label_errors(config, quiet_console, accept_any_rows, folder)
    by_line = {row["line"]: row for row in found.results.predictions}
    assert {6, 30} & {row.line for row in found.doubted}
    for row in found.doubted:
        predicted = by_line[row.line]
        assert row.label == predicted["label"] != row.suggested_label
        assert row.suggested_label == predicted["predicted_label"]
        assert row.suggested_probability == pytest.approx(predicted["predicted_score"], abs=1e-6)
        assert row.label_probability < row.suggested_probability
    assert found.unchecked == 1  # no row of the other fold is a question
    lines = [row["line"] for row in found.results.predictions]
    assert lines == [line for line in range(2, 46) if line != 44]
    assert by_line[2]["predicted_score"] == by_line[45]["predicted_score"]
    right = [row["label"] == row["predicted_label"] for row in found.results.predictions]
    assert found.results.metrics["accuracy"] == pytest.approx(sum(right) / 43)
    kept = [f"fold-{fold}.{kind}" for fold in (1, 2) for kind in ("json", "npz")]
    assert sorted(path.name for path in folder.iterdir()) == kept

    damaged = folder / "fold-2.npz"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    trained = []
    finetune = label_errors.finetune
    monkeypatch.setattr(
        label_errors, "finetune", lambda *keys: trained.append(1) or finetune(*keys)
    )
    again = find_label_errors(config, quiet_console, accept_any_rows, folder)
    assert len(trained) == 1
    assert [row.line for row in again.doubted] == [row.line for row in found.doubted]
    np.testing.assert_allclose(
        [row.label_probability for row in again.doubted],
        [row.label_probability for row in found.doubted],
        rtol=1e-4,
    )


# Confident learning.

GOLDEN = Path(__file__).parents[3] / "golden" / "label_issues.npz"


@pytest.mark.parametrize("case", ["two", "four", "unsure", "sharp"])
def test_thresholds_and_rows_are_those_of_cleanlab(case):
    golden = np.load(GOLDEN)
    labels, probabilities = golden[f"{case}/labels"], golden[f"{case}/probabilities"]
    thresholds = confident_thresholds(labels, probabilities)
    np.testing.assert_allclose(thresholds, golden[f"{case}/thresholds"], rtol=1e-6)
    assert len(golden[f"{case}/issues"]) > 0
    assert doubtful_rows(labels, probabilities).tolist() == golden[f"{case}/issues"].tolist()


def test_a_class_without_rows_is_never_suggested():
    labels = np.array([0, 0, 1, 1])
    probabilities = np.array([[0.2, 0.1, 0.7], [0.8, 0.1, 0.1], [0.9, 0.1, 0], [0.2, 0.8, 0]])
    assert confident_thresholds(labels, probabilities)[2] == 2.0
    assert doubtful_rows(labels, probabilities).tolist() == [2]

"""Confident learning against cleanlab, by values that tests/parity/label_issues.py wrote."""

from pathlib import Path

import numpy as np
import pytest

from bert_tf.tasks.classification.label_errors import confident_thresholds, doubtful_rows

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

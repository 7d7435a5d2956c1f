"""Thresholds against every other one, measured by scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_recall_curve

from bert_tf.tasks.multilabel.metrics import (
    best_threshold,
    global_threshold,
    thresholds_by_label,
)

# Of few values, so that many rows have the same probability.
COLUMN = st.lists(
    st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=1, max_size=30
)


@given(COLUMN)
def test_no_threshold_has_a_higher_f1(rows):
    probabilities, gold = (np.array(column) for column in zip(*rows, strict=True))
    found = best_threshold(probabilities, gold)
    if not gold.any():
        assert found is None
        return
    assert 0 <= found <= 1

    precision, recall, _ = precision_recall_curve(gold, probabilities)
    sums = np.maximum(precision + recall, 1e-9)
    f1 = f1_score(gold, probabilities >= found)
    assert f1 == pytest.approx((2 * precision * recall / sums).max())


def test_it_lies_midway_and_near_one_half():
    assert best_threshold(np.array([0.9, 0.8, 0.4]), np.array([True, True, False])) == (
        pytest.approx(0.6)
    )
    # Both 0.9 and 0.3 from the end up have an F1 of 2/3.
    ties = np.array([0.9, 0.7, 0.3]), np.array([True, False, True])
    assert best_threshold(*ties) == pytest.approx(0.15)
    assert best_threshold(np.array([0.2, 0.2]), np.array([True, False])) == pytest.approx(0.1)


def test_of_all_labels_and_of_each():
    probabilities = np.array([[0.9, 0.2, 0.5], [0.8, 0.3, 0.6], [0.1, 0.1, 0.7]])
    gold = np.array([[True, False, False], [True, True, False], [False, False, False]])
    shared = global_threshold(probabilities, gold)
    assert shared == best_threshold(probabilities.ravel(), gold.ravel()) == pytest.approx(0.75)
    by_label = thresholds_by_label(probabilities, gold)
    assert by_label == pytest.approx((0.45, 0.25, shared))
    nothing = np.zeros_like(gold)
    assert global_threshold(probabilities, nothing) == 0.5
    assert thresholds_by_label(probabilities, nothing) == (0.5, 0.5, 0.5)

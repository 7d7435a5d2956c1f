"""Accuracy, macro F1 and Matthews correlation against hand counts and their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.classification.metrics import classification_metrics


def test_two_classes_by_hand():
    """tp 3, fp 1, fn 2, tn 4."""
    gold = np.array([1, 1, 1, 0, 1, 1, 0, 0, 0, 0])
    predicted = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    metrics = classification_metrics(gold, predicted)
    assert metrics["accuracy"] == pytest.approx(0.7)
    assert metrics["macro_f1"] == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert metrics["matthews_correlation"] == pytest.approx(
        (3 * 4 - 1 * 2) / math.sqrt(4 * 5 * 5 * 6)
    )


def test_one_class_on_a_side_has_no_correlation():
    metrics = classification_metrics(np.array([0, 1]), np.array([1, 1]))
    assert metrics["matthews_correlation"] == 0.0
    assert metrics["macro_f1"] == pytest.approx((0 + 2 / 3) / 2)


def test_classes_that_never_occur_do_not_count():
    """Classes 0 and 3 are not there; class 2 is predicted but never right."""
    metrics = classification_metrics(np.array([1, 1, 4]), np.array([1, 2, 4]))
    assert metrics["macro_f1"] == pytest.approx((2 / 3 + 0 + 1) / 3)


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=50))
def test_matthews_correlation_is_the_correlation_of_indicators(rows):
    """Gorodkin 2004: covariance of the one-hot matrices over their standard deviations."""
    gold, predicted = (np.eye(5)[list(column)] for column in zip(*rows, strict=True))

    def covariance(a, b):
        return float(((a - a.mean(axis=0)) * (b - b.mean(axis=0))).sum())

    scale = math.sqrt(covariance(gold, gold) * covariance(predicted, predicted))
    expected = covariance(gold, predicted) / scale if scale > 1e-9 else 0.0
    found = classification_metrics(gold.argmax(axis=1), predicted.argmax(axis=1))
    assert found["matthews_correlation"] == pytest.approx(expected)
    assert found["accuracy"] == pytest.approx(np.mean([a == b for a, b in rows]))

"""Measures of choices, as scikit-learn defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, label_ranking_average_precision_score

from bert_tf.tasks.multiple_choice.task import choice_values


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 5))
def test_metrics_equal_scikit_learn(seed, rows, choices):
    generator = np.random.default_rng(seed)
    probabilities = generator.integers(0, 4, (rows, choices)) / 3  # with ties
    right = generator.integers(0, choices, rows)
    chosen = probabilities.argmax(axis=1)
    found = choice_values(right, chosen, probabilities, np.full(rows, choices))
    found = {name: values.mean() for name, values in found.items()}
    assert found["accuracy"] == accuracy_score(right, chosen)
    relevant = np.eye(choices)[right]
    expected = label_ranking_average_precision_score(relevant, probabilities)
    assert found["mean_reciprocal_rank"] == pytest.approx(expected)


def test_what_fills_a_row_up_has_no_rank():
    probabilities = np.array([[0.0, 1.0, 0.0, 0.0]])
    found = choice_values(np.array([0]), np.array([1]), probabilities, np.array([2]))
    assert {name: [*values] for name, values in found.items()} == {
        "accuracy": [False],
        "mean_reciprocal_rank": [0.5],
    }

"""Measures of predicted numbers against SciPy and scikit-learn."""

import io
import warnings

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.tasks.regression.metrics import (
    mean_and_deviation,
    missing_number,
    regression_metrics,
    warn_of_one_number,
)

# With few values, so that ties are common.
NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3, width=32))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30))
def test_equal_scipy_and_scikit_learn(rows):
    gold, predicted = np.array(rows).T
    got = regression_metrics(gold, predicted)
    errors = {
        "mse": sklearn.metrics.mean_squared_error(gold, predicted),
        "rmse": sklearn.metrics.root_mean_squared_error(gold, predicted),
        "mae": sklearn.metrics.mean_absolute_error(gold, predicted),
    }
    for name, value in errors.items():
        assert got[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    if gold.std() > 1e-3:
        r2 = sklearn.metrics.r2_score(gold, predicted)
        assert got["r2"] == pytest.approx(r2, rel=1e-6, abs=1e-9)
    if min(gold.std(), predicted.std()) > 1e-3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows that are nearly constant
            correlations = pearsonr(gold, predicted)[0], spearmanr(gold, predicted)[0]
        assert (got["pearson"], got["spearman"]) == pytest.approx(correlations, abs=1e-6)


@pytest.mark.parametrize(
    ("gold", "predicted", "r2"),
    [([2, 2], [1, 3], 0.0), ([2, 2], [2, 2], 1.0), ([1, 3], [2, 2], 0.0), ([5], [4], 0.0)],
)
def test_without_a_spread_on_one_side_there_is_no_correlation(gold, predicted, r2):
    got = regression_metrics(np.array(gold), np.array(predicted))
    assert (got["pearson"], got["spearman"], got["r2"]) == (0.0, 0.0, r2)
    if len(gold) > 1:
        assert sklearn.metrics.r2_score(gold, predicted) == r2


def test_predictions_in_float32_are_measured_in_float64():
    gold = 1e6 + np.arange(4.0)
    got = regression_metrics(gold, (gold + 0.25).astype(np.float32))
    assert got["mse"] == 0.0625
    assert got["pearson"] == pytest.approx(1.0)


# What is learned of labels that are numbers.


def test_mean_and_population_deviation():
    numbers = np.array([0.0, 5.0, 2.5, 1.0])
    assert mean_and_deviation(numbers, "t", "c") == (np.mean(numbers), np.std(numbers))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([3.0, 3.0], r"t: column 'c' holds 3 in every row; regression needs numbers that differ"),
        ([3.0], "holds 3 in every row"),
        ([1.6e9, 1.6e9 + 60], r"deviate by 30 from their mean 1\.6e\+09, less than float32 can"),
    ],
)
def test_numbers_that_do_not_differ_are_refused(numbers, message):
    with pytest.raises(InputError, match=message):
        mean_and_deviation(np.array(numbers), "t", "c")


def test_years_differ_enough():
    assert mean_and_deviation(np.array([2001.0, 2003.0]), "t", "c") == (2002.0, 1.0)


def test_evaluation_rows_of_one_number_are_worth_a_warning():
    stream = io.StringIO()
    warn_of_one_number(np.array([1.0, 2.0]), "t", "c", Console(stream))
    assert stream.getvalue() == ""
    warn_of_one_number(np.array([2.0, 2.0]), "t", "c", Console(stream))
    assert "t: column 'c' holds 2 in every row, so correlations" in stream.getvalue()


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([-999, 0, 1, 2, 5, -999], -999),
        ([0, 99, 1, 2, 3, 99], 99),
        ([-1, 0.2, 0.3, 0.4, -1], -1),
        ([-1, 0, 1, 2, 3, -1], None),
        ([-999, 0, 1, 2, 5], None),
        ([1000, 0, 1, 2, 1000], None),
        ([9, 9, 8, 7, 5, 1], None),
        ([1, 1, 2], None),
    ],
)
def test_numbers_that_stand_for_missing_ones(numbers, expected):
    assert missing_number(np.array(numbers, float)) == expected

"""Standard errors against SciPy's bootstrap and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, pearsonr

from bert_tf.base.wording import shown_measure
from bert_tf.tasks.base.standard_errors import error_of_mean, jackknife_errors
from bert_tf.tasks.classification.metrics import classification_metrics
from bert_tf.tasks.regression.metrics import regression_metrics


@given(rows=st.integers(2, 400), data=st.data())
def test_that_of_right_and_wrong_rows_is_binomial(rows, data):
    right = data.draw(st.integers(1, rows - 1))
    p = right / rows
    error = error_of_mean(np.arange(rows) < right)
    assert error == pytest.approx((p * (1 - p) / rows) ** 0.5)


@pytest.mark.parametrize("right", [True, False])
def test_rows_that_are_all_right_leave_doubt(right):
    errors = [error_of_mean(np.full(rows, right)) for rows in (1, 5, 27, 1_000)]
    assert errors == sorted(errors, reverse=True)
    assert errors[2] == pytest.approx((28 / 29 * 1 / 29 / 27) ** 0.5)
    assert errors[3] < 0.002
    alike = jackknife_errors(classification_metrics, *np.ones((2, 27), np.int64))
    assert alike["accuracy"] == alike["macro_f1"] == pytest.approx(errors[2])


@given(values=st.lists(st.floats(-100, 100), min_size=2, max_size=50))
def test_the_jackknife_of_a_mean_is_the_error_of_a_sample(values):
    values = np.array(values)
    found = jackknife_errors(lambda each: {"mean": float(each.mean())}, values)["mean"]
    expected = values.std(ddof=1) / len(values) ** 0.5
    if expected > 1e-6:
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [40, 300])
def test_that_of_f1_and_correlations_agrees_with_the_bootstrap(rows):
    generator = np.random.default_rng(rows)
    gold = generator.integers(0, 3, rows)
    chosen = np.where(generator.random(rows) < 0.7, gold, generator.integers(0, 3, rows))
    numbers = generator.normal(size=rows)
    values = numbers + generator.normal(size=rows)

    def resampled(statistic, *columns):
        found = bootstrap(
            columns,
            statistic,
            paired=True,
            vectorized=False,
            n_resamples=2_000,
            method="percentile",
            rng=np.random.default_rng(1),
        )
        return found.standard_error

    errors = jackknife_errors(classification_metrics, gold, chosen)
    for name in ("accuracy", "macro_f1", "matthews_correlation"):
        expected = resampled(
            lambda *each, name=name: classification_metrics(*each)[name], gold, chosen
        )
        assert errors[name] == pytest.approx(expected, rel=0.3), name
    errors = jackknife_errors(regression_metrics, numbers, values)
    expected = resampled(lambda *each: pearsonr(*each).statistic, numbers, values)
    assert errors["pearson"] == pytest.approx(expected, rel=0.3)


def test_it_is_the_same_each_time():
    rows = np.random.default_rng(0).normal(size=(2, 1_000))
    assert jackknife_errors(regression_metrics, *rows) == jackknife_errors(
        regression_metrics, *rows
    )


@pytest.mark.parametrize(
    ("value", "error", "rows", "shown"),
    [
        (25 / 27, 0.0504, 27, "0.926 ± 0.050, 27 rows"),
        (87.26, 3.13, 1_200, "87.3 ± 3.1, 1,200 rows"),
        (0.5, 0.0, None, "0.500 ± 0.000"),
        (0.92593, None, 27, "0.9259"),
        (1.604, 0.0203, None, "1.604 ± 0.020"),
        (100.0, 0.0, None, "100.0 ± 0.0"),
    ],
)
def test_a_metric_is_written_with_its_error(value, error, rows, shown):
    assert shown_measure(value, error, rows) == shown

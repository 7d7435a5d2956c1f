"""Temperature scaling and calibration errors by the paper's definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from bert_tf.tasks.classification.metrics import (
    LOWEST_TEMPERATURE,
    CalibrationReport,
    expected_calibration_error,
    fit_temperature,
    log_softmax,
    negative_log_likelihood,
    reliability_bins,
)


class Logits(ClassifierMixin, BaseEstimator):
    """A model of scikit-learn whose inputs are its logits."""

    def fit(self, rows, labels):
        self.classes_ = np.unique(labels)
        return self

    def decision_function(self, rows):
        return rows

    def predict(self, rows):
        return self.classes_[rows.argmax(axis=1)]


def overconfident_rows(seed=3, rows=400, factor=4.0):
    """Labels drawn from a softmax, and logits that are `factor` times too large."""
    random = np.random.default_rng(seed)
    logits = random.normal(0, 1.2, (rows, 3))
    labels = np.array([random.choice(3, p=row) for row in softmax(logits, axis=1)])
    return (logits * factor).astype(np.float32), labels


def test_the_temperature_is_that_of_scikit_learn():
    logits, labels = overconfident_rows()
    model = FrozenEstimator(Logits().fit(logits, labels))
    reference = CalibratedClassifierCV(model, method="temperature").fit(logits, labels)
    temperature = fit_temperature(logits, labels)
    assert 3 < temperature < 5
    np.testing.assert_allclose(
        np.exp(log_softmax(logits / temperature)), reference.predict_proba(logits), atol=1e-4
    )


def test_at_the_best_temperature_the_expected_logit_is_that_of_the_labels():
    """There the derivative of the likelihood is zero."""
    logits, labels = overconfident_rows(seed=5)
    probabilities = np.exp(log_softmax(logits / fit_temperature(logits, labels)))
    expected = (probabilities * logits).sum(axis=1).mean()
    assert expected == pytest.approx(logits[np.arange(len(labels)), labels].mean(), abs=1e-3)


def error_of_the_paper(confidence, right, bins=15):
    """Guo et al. 2017, equations 2 to 5, bin by bin."""
    total = 0.0
    for lower, upper in zip(np.arange(bins) / bins, (np.arange(bins) + 1) / bins, strict=True):
        inside = (confidence > lower) & (confidence <= upper)
        if inside.any():
            gap = abs(right[inside].mean() - confidence[inside].mean())
            total += gap * inside.mean()
    return total


@given(st.lists(st.tuples(st.floats(0.001, 1), st.booleans()), min_size=1, max_size=60))
def test_the_calibration_error_is_that_of_the_paper(rows):
    confidence, right = (np.array(column) for column in zip(*rows, strict=True))
    bins = reliability_bins(confidence, right)
    assert sum(bin_["rows"] for bin_ in bins) == len(rows)
    at_an_edge = np.isclose(confidence * 15, np.round(confidence * 15)) & (confidence < 1)
    if not at_an_edge.any():  # where rounding decides which bin it is
        assert expected_calibration_error(bins) == pytest.approx(
            error_of_the_paper(confidence, right)
        )


def test_certain_rows_are_in_the_last_bin():
    assert reliability_bins(np.array([1.0, 0.0]), np.array([True, False])) == [
        {"rows": 1, "confidence": 0.0, "accuracy": 0.0},
        {"rows": 1, "confidence": 1.0, "accuracy": 1.0},
    ]


def test_the_report_has_both_sides_from_calibrated_probabilities_alone():
    logits, labels = overconfident_rows()
    temperature = fit_temperature(logits, labels)
    before, after = (
        np.exp(log_softmax(logits / divisor)).astype(np.float32) for divisor in (1, temperature)
    )
    report = CalibrationReport(after, labels, temperature)
    details = report.details()
    assert details["temperature"] == temperature
    assert details["negative_log_likelihood"] == pytest.approx(
        negative_log_likelihood(log_softmax(logits / temperature), labels), abs=1e-5
    )
    plain = CalibrationReport(before, labels, 1.0).details()
    assert "uncalibrated" not in plain
    for name in ("expected_calibration_error", "negative_log_likelihood"):
        assert details["uncalibrated"][name] == pytest.approx(plain[name], abs=1e-4)
        assert details[name] < plain[name]
    assert report.line() == (
        f"calibration: temperature {temperature:g}; expected calibration error "
        f"{plain['expected_calibration_error']:.4f} without it, "
        f"{details['expected_calibration_error']:.4f} with it"
    )
    assert not list(report.warnings())


def test_rows_that_are_all_right_determine_no_temperature():
    logits, labels = np.eye(3, dtype=np.float32), np.arange(3)
    temperature = fit_temperature(logits, labels)
    assert temperature == LOWEST_TEMPERATURE
    probabilities = np.exp(log_softmax(logits / temperature)).astype(np.float32)
    (warning,) = CalibrationReport(probabilities, labels, temperature).warnings()
    assert "the evaluation rows do not determine it" in warning

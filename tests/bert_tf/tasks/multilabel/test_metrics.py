"""Measures of sets of labels against scikit-learn."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.base.labels import LabelMeasures
from bert_tf.tasks.multilabel.metrics import label_set_metrics, ranking_metrics


def metrics_of(gold, predicted):
    measures = LabelMeasures(
        (gold & predicted).sum(axis=0),
        predicted.sum(axis=0),
        gold.sum(axis=0),
        rows=len(gold),
        labels=[str(number) for number in range(gold.shape[1])],
    )
    return label_set_metrics(gold, predicted, measures)


@st.composite
def sets_and_scores(draw):
    shape = draw(st.integers(1, 12)), draw(st.integers(2, 5))
    size = shape[0] * shape[1]
    gold = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    scores = draw(st.lists(st.integers(0, 8), min_size=size, max_size=size))
    return np.reshape(gold, shape), np.reshape(scores, shape) / 8


@given(sets_and_scores())
def test_sets_are_measured_as_by_scikit_learn(drawn):
    gold, scores = drawn
    predicted = scores >= 0.5
    got = metrics_of(gold, predicted)
    occurring = (gold | predicted).any(axis=0)
    columns = np.flatnonzero(occurring)
    for measure in ("f1", "precision", "recall"):
        theirs = getattr(sklearn.metrics, f"{measure}_score")
        micro = theirs(gold, predicted, average="micro", zero_division=0)
        macro = (
            theirs(gold, predicted, average="macro", labels=columns, zero_division=0)
            if len(columns)
            else 0.0
        )
        assert got[f"micro_{measure}"] == pytest.approx(micro)
        assert got[f"macro_{measure}"] == pytest.approx(macro)
    samples = sklearn.metrics.f1_score(gold, predicted, average="samples", zero_division=1)
    assert got["samples_f1"] == pytest.approx(samples)
    assert got["subset_accuracy"] == pytest.approx(sklearn.metrics.accuracy_score(gold, predicted))
    assert got["hamming_loss"] == pytest.approx(sklearn.metrics.hamming_loss(gold, predicted))


@pytest.mark.slow
@given(sets_and_scores())
def test_rankings_are_measured_as_by_scikit_learn(drawn):
    gold, scores = drawn
    got = ranking_metrics(gold, scores)
    assert all(np.isfinite(value) for value in got.values())
    there = gold.any(axis=0)
    both = there & ~gold.all(axis=0)
    if there.all():
        expected = sklearn.metrics.average_precision_score(gold, scores, average="macro")
        assert got["mean_average_precision"] == pytest.approx(expected)
    if both.all():
        expected = sklearn.metrics.roc_auc_score(gold, scores, average="macro")
        assert got["roc_auc"] == pytest.approx(expected)
    if not both.any():
        assert got["roc_auc"] == 0.0
    rows = sklearn.metrics.label_ranking_average_precision_score(gold, scores)
    assert got["label_ranking_average_precision"] == pytest.approx(rows)
    assert got["coverage_error"] == pytest.approx(sklearn.metrics.coverage_error(gold, scores))


def test_labels_are_ranked_in_parts(monkeypatch):
    drawn = np.random.default_rng(1)
    gold, scores = drawn.random((7, 40)) < 0.2, drawn.integers(0, 9, (7, 40)) / 8
    whole = ranking_metrics(gold, scores)
    monkeypatch.setattr("bert_tf.tasks.multilabel.metrics._RANKED_AT_ONCE", 50)
    assert ranking_metrics(gold, scores) == pytest.approx(whole)


def test_rankings_by_hand():
    gold = np.array([[True, False], [False, False], [True, True]])
    got = ranking_metrics(gold, np.array([[0.9, 0.1], [0.8, 0.4], [0.7, 0.6]]))
    assert got["mean_average_precision"] == pytest.approx(((1 + 2 / 3) / 2 + 1) / 2)
    assert got["roc_auc"] == pytest.approx((0.5 + 1) / 2)
    assert got["coverage_error"] == pytest.approx((1 + 0 + 2) / 3)
    assert got["label_ranking_average_precision"] == 1.0


def test_rows_that_rightly_get_no_label_count_as_right():
    nothing = np.zeros((2, 3), bool)
    got = metrics_of(nothing, nothing)
    assert (got["samples_f1"], got["subset_accuracy"], got["hamming_loss"]) == (1.0, 1.0, 0.0)
    assert (got["micro_f1"], got["macro_f1"]) == (0.0, 0.0)

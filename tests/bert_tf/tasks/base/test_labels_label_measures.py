"""Measures by label against scikit-learn, for rows with any number of labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import classification_report

from bert_tf.tasks.base.labels import LabelMeasures

LABELS = ("bad", "good", "neutral")
ROW = st.tuples(*[st.booleans()] * 3)


def measures_of(gold, predicted):
    return LabelMeasures(
        (gold & predicted).sum(axis=0),
        predicted.sum(axis=0),
        gold.sum(axis=0),
        rows=len(gold),
        labels=LABELS,
    )


@given(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=20))
def test_details_are_those_of_scikit_learn(rows):
    gold, predicted = (np.array(column) for column in zip(*rows, strict=True))
    details = measures_of(gold, predicted).details()
    report = classification_report(
        gold, predicted, target_names=LABELS, output_dict=True, zero_division=0
    )
    for label in LABELS:
        found, expected = details["labels"][label], report[label]
        assert found["support"] == expected["support"]
        for ours, theirs in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")):
            assert found[ours] == pytest.approx(expected[theirs])
    if (gold | predicted).any(axis=0).all():
        assert details["macro_average"]["f1"] == pytest.approx(report["macro avg"]["f1-score"])
    assert details["weighted_average"]["f1"] == pytest.approx(report["weighted avg"]["f1-score"])


def test_labels_that_are_never_predicted():
    gold = np.array([[True, True, False], [True, False, False]])
    predicted = np.array([[True, False, False], [True, False, False]])
    assert list(measures_of(gold, predicted).warnings()) == [
        "label 'good' is never predicted, though 1 of 2 rows have it"
    ]

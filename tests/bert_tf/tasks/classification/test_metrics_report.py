"""Measures by label against scikit-learn's `classification_report` and `confusion_matrix`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import classification_report, confusion_matrix

from bert_tf.tasks.classification.metrics import LabelReport

LABELS = ("bad", "good", "neutral", "red")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_details_are_those_of_scikit_learn(rows):
    gold, predicted = (np.array(column) for column in zip(*rows, strict=True))
    details = LabelReport(gold, predicted, LABELS).details()
    by_name = classification_report(gold, predicted, output_dict=True, zero_division=0)
    everything = classification_report(
        gold, predicted, labels=range(4), target_names=LABELS, output_dict=True, zero_division=0
    )
    for found, expected in [
        (details["macro_average"], by_name["macro avg"]),
        (details["weighted_average"], by_name["weighted avg"]),
        *((details["labels"][label], everything[label]) for label in LABELS),
    ]:
        assert found["precision"] == pytest.approx(expected["precision"])
        assert found["recall"] == pytest.approx(expected["recall"])
        assert found["f1"] == pytest.approx(expected["f1-score"])
    assert [details["labels"][label]["support"] for label in LABELS] == [
        everything[label]["support"] for label in LABELS
    ]
    dense = [
        [details["confusion"].get(row, {}).get(column, 0) for column in LABELS] for row in LABELS
    ]
    assert dense == confusion_matrix(gold, predicted, labels=range(4)).tolist()
    assert all(count for row in details["confusion"].values() for count in row.values())


def test_the_table():
    gold, predicted = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1, 1, 1, 0])
    assert list(LabelReport(gold, predicted, ("no", "yes ", "not")).lines()) == [
        "  label   precision     recall         f1       rows",
        "  no         0.5000     0.5000     0.5000          2",
        "  'yes '     0.7500     1.0000     0.8571          3",
        "  not        0.0000     0.0000     0.0000          1",
    ]


def test_many_labels_are_not_shown():
    rows = np.arange(21)
    assert not list(LabelReport(rows, rows, [str(row) for row in rows]).lines())


def test_labels_that_are_never_predicted():
    """`red` has no row, so nothing is missed there."""
    report = LabelReport(np.array([0, 0, 1, 2]), np.array([0, 0, 0, 0]), LABELS)
    assert list(report.warnings()) == [
        "label 'good' is never predicted, though 1 of 4 rows have it",
        "label 'neutral' is never predicted, though 1 of 4 rows have it",
    ]
    gold = np.arange(8)
    many = LabelReport(gold, np.zeros(8, int), [str(row) for row in gold])
    assert list(many.warnings())[-1] == "2 more labels are never predicted"

"""Weights of classes as they are written, and as scikit-learn balances them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from bert_tf.base.errors import InputError, UsageError
from bert_tf.tasks.classification.options import parse_class_weights
from bert_tf.tasks.classification.task import class_weights

LABELS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("none", {}),
        ("balanced", {}),
        ("spam=3", {"spam": 3.0}),
        ("spam=3,ham=0.5", {"spam": 3.0, "ham": 0.5}),
        ("spam=3, not spam=1e-2", {"spam": 3.0, "not spam": 0.01}),
        ('"red, blue"=2,x=y=4', {"red, blue": 2.0, "x=y": 4.0}),
    ],
)
def test_what_is_understood(text, weights):
    assert parse_class_weights(text) == weights


@pytest.mark.parametrize("text", ["even", "spam", "spam=", "spam=0", "spam=-1", "spam=inf", "a=1,"])
def test_what_is_refused(text):
    with pytest.raises(ValueError, match="expected none, balanced or label=weight"):
        parse_class_weights(text)


def test_a_label_has_one_weight():
    with pytest.raises(ValueError, match="label 'a' has two weights"):
        parse_class_weights("a=1,a=2")


def test_given_weights_are_in_the_order_of_the_labels():
    assert class_weights("c=3,a=0.5", LABELS, ["a"], [1.0]) == (0.5, 1.0, 3.0)
    assert class_weights("none", LABELS, ["a"], [1.0]) == ()


def test_a_label_that_no_row_has():
    with pytest.raises(UsageError, match="no training row has the label 'd'; the labels are 'a'"):
        class_weights("d=2", LABELS, ["a"], [1.0])


@given(
    st.lists(
        st.tuples(st.sampled_from(LABELS), st.floats(0.01, 9)), min_size=3, max_size=40
    ).filter(lambda rows: {label for label, _ in rows} == set(LABELS))
)
def test_balanced_is_that_of_scikit_learn(rows):
    labels, weights = zip(*rows, strict=True)
    expected = compute_class_weight("balanced", classes=np.array(LABELS), y=np.array(labels))
    assert class_weights("balanced", LABELS, labels, [1.0] * len(rows)) == pytest.approx(expected)
    expected = compute_class_weight(
        "balanced", classes=np.array(LABELS), y=np.array(labels), sample_weight=weights
    )
    assert class_weights("balanced", LABELS, labels, weights) == pytest.approx(expected)


def test_a_label_whose_rows_are_all_held_out_weighs_1():
    assert class_weights("balanced", LABELS, ["a", "c", "c"], [1.0] * 3) == (1.5, 1.0, 0.75)


def test_a_label_without_weight_cannot_be_balanced():
    with pytest.raises(InputError, match="all rows with the label 'b' have a weight of 0"):
        class_weights("balanced", ("a", "b"), ["a", "b"], [1.0, 0.0])

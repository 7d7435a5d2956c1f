"""Predictions that are too unlikely are left out, and what is left is measured."""

import pytest
from toy_regression import REGRESSION

from bert_tf.base.errors import UsageError
from bert_tf.tasks.base.prediction_rows import Abstention, TaskResults
from bert_tf.tasks.registry import TASKS

ROWS = [
    {"line": line, "label": label, "predicted_label": predicted, "predicted_score": score}
    for line, (label, predicted, score) in enumerate(
        [("a", "a", 0.9), ("b", "a", 0.8), ("b", "b", 0.799999), ("a", "b", 0.5)], 2
    )
]
RESULTS = TaskResults(metrics={"accuracy": 0.5}, predictions=ROWS)


def abstention(below):
    return Abstention.of(TASKS["classification"], below, "m")


@pytest.mark.parametrize(
    ("below", "labels", "metrics"),
    [
        (0.1, ["a", "a", "b", "b"], {"coverage": 1.0, "selective_accuracy": 0.5}),
        (0.8, ["a", "a", None, None], {"coverage": 0.5, "selective_accuracy": 0.5}),
        (0.85, ["a", None, None, None], {"coverage": 0.25, "selective_accuracy": 1.0}),
        (1.0, [None] * 4, {"coverage": 0.0}),
    ],
)
def test_rows_below_have_no_prediction(below, labels, metrics):
    measured = abstention(below).measured(RESULTS)
    assert [row["predicted_label"] for row in measured.predictions] == labels
    assert [row["predicted_score"] for row in measured.predictions] == [0.9, 0.8, 0.799999, 0.5]
    assert measured.metrics == {"accuracy": 0.5, **metrics}
    assert [row["predicted_label"] for row in RESULTS.predictions] == ["a", "a", "b", "b"]


def test_the_columns_that_decide_are_probabilities_of_the_same_task():
    for task in TASKS.values():
        kinds = {field.name: field.kind for field in task.predictions}
        for field in task.predictions:
            assert field.decided_by is None or kinds[field.decided_by] == "probability"


def test_predictions_without_a_probability():
    with pytest.raises(UsageError, match="--abstain-below does not apply to m: toy-regression"):
        Abstention.of(REGRESSION, 0.5, "m")

"""The cells of predictions."""

import json

import numpy as np
import pytest
from behavior.toy_regression import REGRESSION

from bert_tf.base.errors import InputError, UsageError
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.base.prediction_rows import (
    Abstention,
    TaskResults,
    equal_predictions,
    prediction_rows,
)
from bert_tf.tasks.registry import TASKS


def test_no_answer_has_no_place_and_scores_have_six_digits():
    rows = prediction_rows(
        [
            PredictionField("predicted_answer", "text"),
            PredictionField("predicted_start", "place"),
            PredictionField("predicted_score", "probability"),
        ],
        {
            "predicted_answer": np.array(["", "ja"], object),
            "predicted_start": np.array([-1, 0], np.int32),
            "predicted_score": np.array([1 / 3, 1], np.float32),
        },
    )
    assert rows == [
        {"predicted_answer": "", "predicted_start": None, "predicted_score": 0.333333},
        {"predicted_answer": "ja", "predicted_start": 0, "predicted_score": 1.0},
    ]


@pytest.mark.parametrize(
    ("value", "cell"), [(3.1, 3.1), (-1.0, -1.0), (1e-9, 1e-9), (2.5e8, 2.5e8), (1 / 3, 0.3333333)]
)
def test_a_value_has_the_digits_of_its_type(value, cell):
    fields = [PredictionField("predicted_value", "value")]
    rows = prediction_rows(fields, {"predicted_value": np.array([value], np.float32)})
    assert rows == [{"predicted_value": cell}]


def test_lists_and_arrays_give_the_same_cells():
    fields = [PredictionField("place", "place"), PredictionField("label", "label")]
    arrays = {"place": np.array([-1, 3]), "label": np.array(["a", "b"], object)}
    lists = {name: list(values) for name, values in arrays.items()}
    assert prediction_rows(fields, arrays) == prediction_rows(fields, lists)


def test_json_text_and_python_values_give_the_same_cells():
    fields = [PredictionField("spans", "json")]
    values = [[], ["a", {"start": 3, "score": 0.5, "text": 'ł "b"\n'}], {"none": None}]
    texts = np.array([json.dumps(value) for value in values], object)
    rows = prediction_rows(fields, {"spans": values})
    assert rows == [{"spans": value} for value in values]
    assert prediction_rows(fields, {"spans": texts}) == rows


def test_a_model_that_lacks_an_output_is_to_be_exported_again():
    fields = [PredictionField(name, "text") for name in ("answer", "more")]
    with pytest.raises(InputError, match="no output more: .* export it again"):
        prediction_rows(fields, {"answer": ["x"]})


def test_predictions_are_equal_whatever_their_scores():
    fields = [
        PredictionField("entities", "json"),
        PredictionField("label", "label"),
        PredictionField("score", "probability"),
    ]
    one = {
        "entities": [[{"start": 0, "label": "a", "score": 0.5}], [{"start": 0}], []],
        "label": ["x", "x", "y"],
        "score": [0.5, 0.5, 0.5],
    }
    other = {
        "entities": [[{"start": 0, "label": "a", "score": 0.6}], '[{"start": 1}]', []],
        "label": ["x", "x", "x"],
        "score": [0.6, 0.5, 0.5],
    }
    found = equal_predictions(fields, one, other)
    assert found is not None and found.tolist() == [True, False, False]
    assert equal_predictions(fields[2:], one, other) is None


# Predictions that are too unlikely are left out, and what is left is measured.
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

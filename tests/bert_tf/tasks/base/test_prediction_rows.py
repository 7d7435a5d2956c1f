"""The cells of predictions."""

import json

import numpy as np
import pytest

from bert_tf.base.errors import InputError
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.base.prediction_rows import equal_predictions, prediction_rows


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

"""Which columns are read and added."""

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ScoreConfig
from pipeline.scoring.columns import prediction_rows, scoring_columns

CLASSIFICATION = {
    "task": "classification",
    "columns": {"text": "body", "text_pair": None, "label": "label"},
}
QUESTIONS = {"task": "qa", "columns": {"question": "q", "context": "c", "answer": "a"}}


def config_of(**values) -> ScoreConfig:
    return build_section(ScoreConfig, {"model": "m", "input": ["i"], "output": "o", **values})


def test_columns_default_to_those_of_the_model():
    assert scoring_columns(config_of(), CLASSIFICATION).sources == {"text": "body"}
    columns = scoring_columns(config_of(context_column="page"), QUESTIONS)
    assert columns.sources == {"question": "q", "context": "page"}
    assert columns.predictions[0] == "predicted_answer"


def test_columns_the_model_does_not_read_are_refused():
    with pytest.raises(UsageError, match="--question-column has no meaning for m: its model read"):
        scoring_columns(config_of(question_column="q"), CLASSIFICATION)
    with pytest.raises(UsageError, match="--text-pair-column has no meaning"):
        scoring_columns(config_of(text_pair_column="q"), CLASSIFICATION)
    with pytest.raises(UsageError, match="was pretrained only"):
        scoring_columns(config_of(), None)


def test_no_answer_has_no_place_and_scores_have_six_digits():
    rows = prediction_rows(
        ("predicted_answer", "predicted_start", "predicted_score"),
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

"""Which columns are read and added."""

import dataclasses

import pytest
from toy_regression import REGRESSION

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ScoreConfig
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.registry import TASKS
from pipeline.scoring.plan import scoring_columns

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


def test_any_input_is_named_by_the_flag_of_all(monkeypatch):
    monkeypatch.setitem(TASKS, REGRESSION.name, REGRESSION)
    task = {"task": REGRESSION.name, "columns": {"body": "review", "reply": None, "label": "y"}}
    assert scoring_columns(config_of(), task).sources == {"body": "review"}
    given = config_of(columns=["body=opinion=text"])
    assert scoring_columns(given, task).sources == {"body": "opinion=text"}
    for entry in ("reply=answer", "label=y", "text=review"):
        refused = f"^--column {entry} has no meaning for m: its model reads body$"
        with pytest.raises(UsageError, match=refused):
            scoring_columns(config_of(columns=[entry]), task)
    twice = "^--column body=b: the column of body is 'a' already; name it once$"
    with pytest.raises(UsageError, match=twice):
        scoring_columns(config_of(columns=["body=a", "body=b"]), task)
    given = config_of(context_column="page", columns=["question=ask"])
    assert scoring_columns(given, QUESTIONS).sources == {"question": "ask", "context": "page"}


def test_an_input_of_several_texts_may_have_several_columns():
    columns = {"context": "story", "question": None, "choices": ["endings"], "label": "right"}
    task = {"task": "multiple-choice", "columns": columns}
    assert scoring_columns(config_of(), task).sources["choices"] == ("endings",)
    given = config_of(columns=["choices=first", "choices=second"])
    assert scoring_columns(given, task).sources["choices"] == ("first", "second")


@pytest.mark.parametrize("entry", ["body", "body=", "=review"])
def test_an_input_without_a_column_is_refused(entry):
    with pytest.raises(ConfigError, match=r"score.columns: expected INPUT=COLUMN .*, got"):
        config_of(columns=[entry])


def test_columns_the_model_does_not_read_are_refused():
    with pytest.raises(UsageError, match="--question-column has no meaning for m: its model read"):
        scoring_columns(config_of(question_column="q"), CLASSIFICATION)
    with pytest.raises(UsageError, match="--text-pair-column has no meaning"):
        scoring_columns(config_of(text_pair_column="q"), CLASSIFICATION)
    with pytest.raises(UsageError, match="m: task 'parsing' is not known"):
        scoring_columns(config_of(), {**CLASSIFICATION, "task": "parsing"})
    with pytest.raises(UsageError, match="was pretrained only"):
        scoring_columns(config_of(), None)


def test_extra_columns_are_added_on_request(monkeypatch):
    declared = TASKS["qa"]
    fields = (
        PredictionField("answer", "text"),
        PredictionField("odds", "value", is_extra=True),
        PredictionField("more", "json", is_extra=True),
    )
    monkeypatch.setitem(TASKS, "qa", dataclasses.replace(declared, predictions=fields))
    assert scoring_columns(config_of(), QUESTIONS).predictions == ("answer",)
    columns = scoring_columns(config_of(extra_columns=["more"]), QUESTIONS)
    assert columns.predictions == ("answer", "more")
    for name in ("answer", "nbest"):
        with pytest.raises(
            UsageError, match=f"--extra-column {name}: m has no such column; it offers odds, more"
        ):
            scoring_columns(config_of(extra_columns=[name]), QUESTIONS)
    with pytest.raises(UsageError, match="--extra-column x: m has no such column; it offers none"):
        scoring_columns(config_of(extra_columns=["x"]), CLASSIFICATION)

"""The columns that are read and added."""

import dataclasses

import numpy as np
import pytest
from behavior.toy_regression import REGRESSION

from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ScoreConfig
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.profile.distance import LEAST_TRAINING_ROWS
from bert_tf.tasks.profile.profile import Profile
from bert_tf.tasks.registry import TASKS
from pipeline.scoring import plan
from pipeline.scoring.columns import scoring_columns

CLASSIFICATION = {
    "task": "classification",
    "columns": {"text": "body", "text_pair": None, "label": "label"},
}
QUESTIONS = {"task": "qa", "columns": {"question": "q", "context": "c", "answer": "a"}}


TOPICS = {**CLASSIFICATION, "labels": ["World", "Sci/Tech", "Sport"]}
SCORES = np.array([[0.1, 0.7, 0.2], [1 / 3, 1 / 3, 1 / 3]], np.float32)
CHOICES = {
    "task": "multiple-choice",
    "columns": {"context": "c", "question": None, "choices": ["a"], "label": "l"},
}


def config_of(**values) -> ScoreConfig:
    return build_section(ScoreConfig, {"model": "m", "input": ["i"], "output": "o", **values})


def test_columns_default_to_those_of_the_model():
    assert scoring_columns(config_of(), CLASSIFICATION).sources == {"text": "body"}
    columns = scoring_columns(config_of(context_column="page"), QUESTIONS)
    assert columns.sources == {"question": "q", "context": "page"}
    assert next(iter(columns.added("csv"))) == "predicted_answer"


def test_a_second_text_is_read_where_tables_have_it_if_weights_do_not_say():
    task = {
        **CLASSIFICATION,
        "columns": {"text": "text", "text_pair": "text_pair", "label": "label"},
        "is_pair_optional": True,
    }
    pairs = scoring_columns(config_of(), task, has_column=lambda name: name == "text_pair")
    assert pairs.sources == {"text": "text", "text_pair": "text_pair"}
    assert pairs.empty_inputs == ()
    single = scoring_columns(config_of(), task, has_column=lambda name: False)
    assert single.sources == {"text": "text"}
    assert single.empty_inputs == ("text_pair",)
    given = config_of(text_pair_column="other")
    named = scoring_columns(given, task, has_column=lambda name: False)
    assert named.sources == {"text": "text", "text_pair": "other"}
    required = {**task, "is_pair_optional": False}
    assert scoring_columns(config_of(), required, has_column=lambda name: False).sources == {
        "text": "text",
        "text_pair": "text_pair",
    }


def test_any_input_is_named_by_the_flag_of_all(monkeypatch):
    monkeypatch.setitem(TASKS, REGRESSION.name, REGRESSION)
    task = {"task": REGRESSION.name, "columns": {"body": "review", "reply": None, "label": "y"}}
    assert scoring_columns(config_of(), task).sources == {"body": "review"}
    given = config_of(columns=["body=opinion=text"])
    assert scoring_columns(given, task).sources == {"body": "opinion=text"}
    for entry in ("reply=answer", "label=y", "text=review"):
        refused = f"^--column {entry} does not apply to m: its model reads body$"
        with pytest.raises(UsageError, match=refused):
            scoring_columns(config_of(columns=[entry]), task)
    twice = "^--column body=b: the column of body is 'a' already; give it once$"
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
    with pytest.raises(UsageError, match="--question-column does not apply to m: its model read"):
        scoring_columns(config_of(question_column="q"), CLASSIFICATION)
    with pytest.raises(UsageError, match="--text-pair-column does not apply"):
        scoring_columns(config_of(text_pair_column="q"), CLASSIFICATION)
    with pytest.raises(UsageError, match="m: task 'parsing' is not known"):
        scoring_columns(config_of(), {**CLASSIFICATION, "task": "parsing"})
    with pytest.raises(UsageError, match="is only pretrained"):
        scoring_columns(config_of(), None)


def test_extra_columns_are_added_on_request(monkeypatch):
    declared = TASKS["qa"]
    fields = (
        PredictionField("answer", "text"),
        PredictionField("odds", "value", is_extra=True),
        PredictionField("more", "json", is_extra=True),
    )
    monkeypatch.setitem(TASKS, "qa", dataclasses.replace(declared, predictions=fields))
    assert scoring_columns(config_of(), QUESTIONS).added("csv") == {"answer": "text"}
    columns = scoring_columns(config_of(extra_columns=["more"]), QUESTIONS)
    assert columns.added("csv") == {"answer": "text", "more": "json"}
    for name in ("answer", "nbest"):
        with pytest.raises(
            UsageError, match=f"--extra-column {name}: m has no such column; it offers odds, more"
        ):
            scoring_columns(config_of(extra_columns=[name]), QUESTIONS)
    with pytest.raises(UsageError, match="--extra-column x: m has no such column; it offers none"):
        scoring_columns(config_of(extra_columns=["x"]), CLASSIFICATION)


def cells_of(columns, output_format: str, **predicted) -> list[dict]:
    """Return the cells of rows whose own predictions are left out."""
    columns = dataclasses.replace(columns, fields=())
    texts = predicted.pop("texts", {})
    return columns.cells([{}, {}], predicted, texts, output_format)


def test_all_scores_are_an_object_or_a_column_for_each_label():
    columns = scoring_columns(config_of(scores="all"), TOPICS)
    names = ["predicted_label", "predicted_score"]
    assert list(columns.added("jsonl")) == [*names, "predicted_probabilities"]
    flat = [f"predicted_probabilities_{label}" for label in TOPICS["labels"]]
    for output_format in ("csv", "tsv", "parquet"):
        assert list(columns.added(output_format)) == [*names, *flat]
        first, second = cells_of(columns, output_format, probabilities=SCORES)
        assert first == dict(zip(flat, (0.1, 0.7, 0.2), strict=True))
        assert second == dict.fromkeys(flat, 0.333333)
    (first, _) = cells_of(columns, "jsonl", probabilities=SCORES)
    assert first == {
        "predicted_probabilities": {"World": 0.1, "Sci/Tech": 0.7, "Sport": 0.2},
    }


@pytest.mark.parametrize("output_format", ["jsonl", "csv"])
def test_the_likeliest_come_first_and_of_equal_ones_the_first(output_format):
    columns = scoring_columns(config_of(scores="top-2"), TOPICS)
    assert columns.added(output_format)["predicted_ranking"] == "json"
    found = cells_of(columns, output_format, probabilities=SCORES)
    assert [row["predicted_ranking"] for row in found] == [
        [{"label": "Sci/Tech", "score": 0.7}, {"label": "Sport", "score": 0.2}],
        [{"label": "World", "score": 0.333333}, {"label": "Sci/Tech", "score": 0.333333}],
    ]


def test_every_row_has_as_many_scores_as_choices():
    padded = np.array([[0.4, 0.6, 0.0], [0.2, 0.5, 0.3]], np.float32)
    texts = {"choices": [["x", "y"], ["x", "y", "z"]]}
    for output_format in ("jsonl", "csv"):
        columns = scoring_columns(config_of(scores="all"), CHOICES)
        found = cells_of(columns, output_format, probabilities=padded, texts=texts)
        assert [row["predicted_probabilities"] for row in found] == [[0.4, 0.6], [0.2, 0.5, 0.3]]
    columns = scoring_columns(config_of(scores="top-9"), CHOICES)
    found = cells_of(columns, "jsonl", probabilities=padded, texts=texts)
    assert found[0]["predicted_ranking"] == [
        {"choice": 1, "score": 0.6},
        {"choice": 0, "score": 0.4},
    ]


def test_scores_that_a_task_or_model_does_not_have_are_refused():
    refused = "--scores all does not apply to m: qa predicts"
    with pytest.raises(UsageError, match=refused):
        scoring_columns(config_of(scores="all"), QUESTIONS)
    columns = scoring_columns(config_of(scores="all"), TOPICS)
    with pytest.raises(InputError, match="no output probabilities, which --scores needs"):
        cells_of(columns, "csv")
    for scores in ("some", "top-0", "top-", "ALL", "top-2x"):
        with pytest.raises(ConfigError, match=r"score.scores: expected best, all or top-N"):
            config_of(scores=scores)


def test_added_columns_have_the_names_they_are_given():
    rename = ["predicted_label=topic", "predicted_probabilities=p=q"]
    columns = scoring_columns(config_of(scores="all", rename=rename), TOPICS)
    assert list(columns.added("jsonl")) == ["topic", "predicted_score", "p=q"]
    assert list(columns.added("csv"))[2:] == ["p=q_World", "p=q_Sci/Tech", "p=q_Sport"]
    predictions = [{"predicted_label": "World", "predicted_score": 0.5}] * 2
    given = {name: columns.named_by(name) for name in ("topic", "predicted_score", "p=q_Sport")}
    assert list(given.values()) == [
        *("predicted_label", "predicted_score", "predicted_probabilities"),
    ]
    (row, _) = columns.cells(predictions, {"probabilities": SCORES}, {}, "csv")
    assert list(row) == list(columns.added("csv"))
    assert row["topic"] == "World"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["label=x"], "--rename label=x: no such column is added; the added ones are predicted_l"),
        (["predicted_label=a", "predicted_label=b"], "its name is 'a' already; give it once"),
        (["predicted_label=predicted_score"], "two added columns would both be called 'predict"),
        (["predicted_label=predicted_probabilities_Sport"], "would both be called 'predicted_pr"),
    ],
)
def test_names_that_cannot_be_given_are_refused(entries, message):
    with pytest.raises(UsageError, match=message):
        scoring_columns(config_of(scores="all", rename=entries), TOPICS)
    for entry in ("label", "=x", "label="):
        with pytest.raises(ConfigError, match=r"score.rename: expected NAME=COLUMN"):
            config_of(rename=[entry])


@pytest.mark.parametrize("name", TASKS)
def test_far_texts_are_refused_by_task_before_anything_is_advised(name, tmp_path):
    (tmp_path / plan.WEIGHTS).touch()
    Profile().write(tmp_path)
    config = config_of(model=str(tmp_path), abstain_far=0.9)
    with pytest.raises(UsageError) as raised:
        plan._abstention(config, TASKS[name], None)
    message = str(raised.value)
    assert message.startswith("--abstain-far")
    if name == "classification":
        assert f"fewer than {LEAST_TRAINING_ROWS} training rows; run finetune" in message
    else:
        assert "is for classification" in message
        assert f"does {name}" in message
        assert "run finetune" not in message

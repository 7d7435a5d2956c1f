"""One row in, the answers of a model out; and the models there are to try."""

import io

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from pipeline.trying.model import MOST_CHARACTERS, opened_model

TOPICS = {
    "task": "classification",
    "labels": ["fun", "news", "art"],
    "columns": {"text": "body", "text_pair": None, "label": "label"},
}
TOPIC = {
    "predicted_label": "news",
    "predicted_score": 0.5,
    "probabilities": [0.3, 0.5, 0.2],
    "lost_tokens": 0,
}
CHOICES = {
    "task": "multiple-choice",
    "columns": {"context": "story", "question": None, "choices": ["first", "second"]},
}
MASKS = {"task": "fill-mask", "columns": {"text": "text"}, "max_seq_length": 16, "top_k": 2}


def test_labels_come_with_their_probabilities_the_likeliest_first(tried_model):
    model = tried_model(TOPICS, TOPIC)
    assert model.predictor.columns == {"text": "body"}
    tried = model.predict({"text": " a text\nof two lines", "other": "x"})
    assert model.predictor.engine.given == [{"text": [" a text\nof two lines"]}]
    assert tried.predictions == {"predicted_label": "news", "predicted_score": 0.5}
    assert tried.ranking == [("news", 0.5), ("fun", 0.3), ("art", 0.2)]
    assert tried.lost_tokens == 0


def test_lost_tokens_are_known(tried_model):
    model = tried_model(TOPICS, {**TOPIC, "lost_tokens": 7})
    assert model.predict({"text": "a"}).lost_tokens == 7


def test_choices_are_lines_and_their_probabilities_have_their_texts(tried_model):
    outputs = {
        "predicted_choice": 1,
        "predicted_text": "y z",
        "predicted_score": 0.75,
        "probabilities": [0.25, 0.75, 0.0],  # of rows with fewer choices, zeros at the end
    }
    model = tried_model(CHOICES, outputs)
    assert [isinstance(each, list) for each in model.predictor.columns.values()] == [False, True]
    tried = model.predict({"context": "s", "choices": "x\n\n y z \n"})
    assert model.predictor.engine.given == [{"context": ["s"], "choices": [["x", "y z"]]}]
    assert tried.ranking == [("y z", 0.75), ("x", 0.25)]


def test_a_model_that_does_not_choose_has_no_ranking(tried_model):
    outputs = {
        "predicted_text": "Rome",
        "predicted_score": 0.5,
        "predicted_tokens": '[[{"token": "Rome", "score": 0.5, "text": "Rome"}]]',
    }
    tried = tried_model(MASKS, outputs).predict({"text": "[MASK]"})
    assert tried.ranking is None
    assert tried.predictions["predicted_tokens"] == [
        [{"token": "Rome", "score": 0.5, "text": "Rome"}]
    ]


@pytest.mark.parametrize(
    ("task", "texts", "message"),
    [
        (TOPICS, {}, "^text is empty"),
        (TOPICS, {"text": " \n\t"}, "^text is empty"),
        (
            TOPICS,
            {"text": "x" * (MOST_CHARACTERS + 1)},
            "^text has 20,001 characters, more than the limit of 20,000",
        ),
        (CHOICES, {"context": "x", "choices": "a"}, "^fewer than two choices: 1"),
        (CHOICES, {"choices": "a\nb"}, "^context is empty"),
        (MASKS, {"text": "no mask"}, r"^text has no \[MASK\]$"),
    ],
)
def test_a_row_that_cannot_be_predicted_is_refused_before_the_model_runs(
    tried_model, task, texts, message
):
    model = tried_model(task, {})
    with pytest.raises(UsageError, match=message):
        model.predict(texts)
    assert model.predictor.engine.given == []


def test_what_is_no_folder_is_refused_at_once(tmp_path):
    (tmp_path / "file").touch()
    for name, message in (("none", "no such model directory"), ("file", "is a file; expected a m")):
        with (
            pytest.raises(UsageError, match=message),
            opened_model(str(tmp_path / name), Console(io.StringIO())),
        ):
            pass

"""Rows in, predictions out: texts, mappings and columns, in order, with faults named by row."""

import dataclasses
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.engines.predictor import Predictor
from bert_tf.tasks.registry import TASKS

TOPICS = {
    "task": "classification",
    "labels": ["long", "short"],
    "columns": {"text": "body", "text_pair": None, "label": "label"},
}
PAIRS = {**TOPICS, "columns": {"text": "a", "text_pair": "b", "label": "label"}}
CHOICES = {
    "task": "multiple-choice",
    "columns": {"context": "story", "question": None, "choices": ["first", "second"]},
}


class FakeEngine:
    """Predicts whether a text has more than five characters; keeps its inputs."""

    def predict(self, columns, *, batch_tokens):
        self.columns = columns
        texts = next(iter(columns.values()))
        is_long = np.array([len(text) > 5 for text in texts], bool)
        probabilities = np.stack([is_long, ~is_long], axis=1).astype(np.float32) * 0.5 + 0.25
        return {
            "predicted_label": np.where(is_long, "long", "short").astype(object),
            "predicted_choice": np.where(is_long, 0, 1).astype(np.int32),
            "predicted_text": np.array(texts, object),
            "predicted_score": np.full(len(texts), 0.75, np.float32),
            "probabilities": probabilities,
        }


def predictor_of(task) -> Predictor:
    return Predictor(
        folder="m",
        engine_name="fake",
        engine=FakeEngine(),
        declared=TASKS[task["task"]],
        task=task,
    )


SHORT, LONG = ({"predicted_label": label, "predicted_score": 0.75} for label in ("short", "long"))


@pytest.mark.parametrize(
    "rows",
    [
        ["a", "a long text"],
        [{"body": "a", "other": 1}, {"body": "a long text"}],
        [{"text": "a"}, {"text": "a long text"}],
        ["a", {"body": "a long text", "text": "b"}],
    ],
)
def test_rows_are_texts_or_values_by_column(rows):
    assert predictor_of(TOPICS).predict(rows) == [SHORT, LONG]


class FakeTagger:
    """Tags words with a capital, in the form of an exported model."""

    def predict(self, columns, *, batch_tokens):
        tags = [
            [
                {
                    "start": found.start(),
                    "end": found.end(),
                    "tag": "B-x" if found[0].istitle() else "O",
                    "score": 0.5,
                }
                for found in re.finditer(r"\w+|\.", text)
            ]
            for text in columns["text"]
        ]
        return {
            "predicted_tags": np.array([json.dumps(row) for row in tags], object),
            "predicted_entities": np.array(["[]"] * len(tags), object),
            "mean_score": np.full(len(tags), 0.5, np.float32),
        }


def test_rows_of_words_are_tagged_by_their_words():
    task = {"task": "tagging", "scheme": "bio", "columns": {"text": "text", "tokens": "w"}}
    tagger = dataclasses.replace(predictor_of(TOPICS), declared=TASKS["tagging"], task=task)
    tagger = dataclasses.replace(tagger, engine=FakeTagger())
    entity = {"start": 0, "end": 3, "label": "x", "text": "Mr.", "score": 0.5}
    text, row = tagger.predict(["Mr. up", {"w": ["Mr.", "up"]}])
    assert "predicted_token_tags" not in text and len(text["predicted_tags"]) == 3
    assert row["predicted_token_tags"] == ["B-x", "O"]
    assert row["predicted_entities"] == [entity] and len(row["predicted_tags"]) == 2
    columns = tagger.predict({"tokens": [["Mr.", "up"], ["up"]], "text": ["no", "no"]})
    assert columns["predicted_token_tags"] == [["B-x", "O"], ["O"]]
    with pytest.raises(UsageError, match=r"rows\[0\]: has no value for 'text'"):
        tagger.predict([{"w": [1, 2]}])


def test_columns_give_columns():
    found = predictor_of(TOPICS).predict({"n": [1, 2], "body": ["a", 1234567]}, scores="all")
    assert found == {
        "predicted_label": ["short", "long"],
        "predicted_score": [0.75, 0.75],
        "predicted_probabilities": [
            {"long": 0.25, "short": 0.75},
            {"long": 0.75, "short": 0.25},
        ],
    }
    with pytest.raises(UsageError, match="columns of different lengths"):
        predictor_of(TOPICS).predict({"n": [1], "body": ["a", "b"]})


def test_no_rows_have_no_predictions():
    assert predictor_of(TOPICS).predict([]) == []
    assert predictor_of(TOPICS).predict({"body": []})["predicted_label"] == []


def test_the_likeliest_are_asked_for():
    (row,) = predictor_of(TOPICS).predict(["a"], scores="top-1")
    assert row == {**SHORT, "predicted_ranking": [{"label": "short", "score": 0.75}]}
    with pytest.raises(ValueError, match="expected best, all or top-N"):
        predictor_of(TOPICS).predict(["a"], scores="some")


def test_several_inputs_come_from_their_columns():
    predictor = predictor_of(PAIRS)
    predictor.predict([{"a": "x", "b": 2}, {"text": "y", "text_pair": "z"}])
    assert predictor.engine.columns == {"text": ["x", "y"], "text_pair": ["2", "z"]}
    with pytest.raises(UsageError, match=r"rows\[0\]: is a text, but the model reads text and tex"):
        predictor.predict(["x"])


def test_a_second_text_may_be_missing_where_weights_do_not_say_that_they_read_pairs():
    predictor = predictor_of({**PAIRS, "is_pair_optional": True})
    predictor.predict(["x", {"a": "y"}, {"a": "v", "b": "w"}, {"a": "z", "b": None}])
    assert predictor.engine.columns == {
        "text": ["x", "y", "v", "z"],
        "text_pair": ["", "", "w", ""],
    }
    with pytest.raises(UsageError, match=r"rows\[0\]: has no value for 'a'"):
        predictor.predict([{"b": "w"}])


def test_arrays_of_arrow_have_values_and_nulls():
    predictor = predictor_of(TOPICS)
    predictor.predict({"body": pa.array(["x", "y"])})
    predictor.predict(pa.array(["x", "y"]))
    predictor.predict([{"body": pa.scalar("x")}, {"body": pa.scalar("y")}])
    assert predictor.engine.columns == {"text": ["x", "y"]}
    for rows in ({"body": pa.array(["a", None])}, [{"body": "a"}, {"body": pa.scalar(None)}]):
        with pytest.raises(UsageError, match=r"rows\[1\]: has no value for 'body'"):
            predictor.predict(rows)


@pytest.mark.parametrize("values", ["The ship is late", b"ship", {"a": 1}, 5, None])
def test_one_value_is_no_column(values):
    with pytest.raises(UsageError, match=r"^columns: 'body' is a single value, not a list"):
        predictor_of(TOPICS).predict({"body": values})


def test_choices_are_a_list_or_several_columns():
    predictor = predictor_of(CHOICES)
    predictor.predict(
        [
            {"story": "s", "first": "x", "second": "y"},
            {"story": "t", "choices": ["u", "v", "w"]},
        ]
    )
    assert predictor.engine.columns["choices"] == [["x", "y"], ["u", "v", "w"]]


def test_rows_may_have_fewer_choices_than_columns():
    columns = {"context": "story", "question": None, "choices": ["first", "second", "third"]}
    predictor = predictor_of({**CHOICES, "columns": columns})
    more = [{"third": "z"}, {"third": None}, {"third": ""}, {}]
    predictor.predict([{"story": "s", "first": "x", "second": "y", **each} for each in more])
    assert predictor.engine.columns["choices"] == [["x", "y", "z"], *[["x", "y"]] * 3]
    with pytest.raises(
        UsageError, match=r"rows\[0\]: has no value for 'first and second and third"
    ):
        predictor.predict([{"story": "s", "first": "x", "third": "z"}])


class Missing:
    """Compares as pandas.NA does."""

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize(
    ("task", "row", "message"),
    [
        (TOPICS, {"title": "x"}, r"rows\[1\]: has no value for 'body', which the model reads"),
        (TOPICS, {"body": None}, r"rows\[1\]: has no value for 'body'"),
        (TOPICS, {"body": ["x"]}, r"rows\[1\]: column 'body' is not text: \['x'\]"),
        (CHOICES, {"story": "s"}, r"rows\[1\]: has no value for 'first and second'"),
        (CHOICES, {"story": "s", "choices": ["x"]}, r"rows\[1\]: fewer than two choices: 1"),
        (TOPICS, None, r"rows\[1\]: is neither a text nor a mapping .*: None"),
        (TOPICS, float("nan"), r"rows\[1\]: is neither a text nor a mapping .*: nan"),
        (TOPICS, b"a", r"rows\[1\]: is neither a text nor a mapping .*: b'a'"),
        (TOPICS, "\ud800", r"rows\[1\]: is not Unicode: '\\ud800'"),
        (TOPICS, {"body": float("nan")}, r"rows\[1\]: has no value for 'body'"),
        (TOPICS, {"body": np.float32("nan")}, r"rows\[1\]: has no value for 'body'"),
        (TOPICS, {"body": Missing()}, r"rows\[1\]: has no value for 'body'"),
        (TOPICS, {"body": bytearray(b"a")}, r"rows\[1\]: column 'body' is not text"),
        (TOPICS, {"body": np.array(["a", "b"])}, r"rows\[1\]: column 'body' is not text"),
        (TOPICS, {"body": "\ud800"}, r"rows\[1\]: column 'body' is not text: '\\ud800'"),
        (CHOICES, {"story": "s", "choices": ["x", b"y"]}, r"rows\[1\]: .* not text: b'y'"),
        (CHOICES, {"story": "s", "first": "x", "second": np.nan}, r"rows\[1\]: has no value for"),
    ],
)
def test_a_row_that_cannot_be_predicted_is_named(task, row, message):
    good = {"body": "x", "story": "s", "choices": ["x", "y"]}
    with pytest.raises(UsageError, match=message):
        predictor_of(task).predict([good, row])


@pytest.mark.parametrize("rows", ["good film", b"good film", None, 5])
def test_what_is_no_list_of_rows_is_refused(rows):
    with pytest.raises(UsageError, match="rows: expected a list of texts or rows, got"):
        predictor_of(TOPICS).predict(rows)


def test_the_columns_of_a_table_are_not_taken_for_its_rows():
    class Frame(list):
        columns = ("body",)

    with pytest.raises(UsageError, match=r"rows: is a table; give its columns"):
        predictor_of(TOPICS).predict(Frame(["body"]))


def test_loading_imports_neither_beam_nor_an_engine_before_a_model_is_there(tmp_path):
    code = (
        "import sys\n"
        "from bert_tf import load\n"
        "try:\n"
        f"    load({str(tmp_path)!r})\n"
        "except Exception as error:\n"
        "    assert 'is not an exported model' in str(error), error\n"
        "sys.exit(', '.join({'tensorflow', 'apache_beam', 'keras'} & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

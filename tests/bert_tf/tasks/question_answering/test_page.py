"""The sections of a page on answers."""

import numpy as np
import pytest

from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.report_sections import Mark
from bert_tf.tasks.question_answering.metrics import token_f1
from bert_tf.tasks.question_answering.page import Outcome, outcome_of
from bert_tf.tasks.question_answering.question_files import Answer
from bert_tf.tasks.question_answering.rows import Questions
from bert_tf.tasks.registry import page_function


@pytest.mark.parametrize(
    ("predicted", "golds", "outcome"),
    [
        ("the Rome", ["Rome"], Outcome.RIGHT),
        ("", [], Outcome.RIGHT),
        ("Rome", [], Outcome.ANSWERED),
        ("", ["Rome"], Outcome.NOT_ANSWERED),
        ("old Rome", ["Paris", "Rome"], Outcome.LONGER),
        ("Rome", ["old Rome"], Outcome.SHORTER),
        ("old Rome", ["Rome today"], Outcome.PARTLY),
        ("Paris", ["Rome"], Outcome.ELSEWHERE),
    ],
)
def test_an_answer_is_compared_as_its_f1_is(predicted, golds, outcome):
    scores = [token_f1(predicted, gold, version_2=True) for gold in golds or [""]]
    assert outcome_of(predicted, golds, max(scores)) == outcome


CONTEXT = f"Anna lives in Paris. {'x ' * 500}Ben lives in Rome."
AT = CONTEXT.index("Rome")


@pytest.fixture
def sections():
    source = Questions(
        source="q.json",
        lines=[1, 2, 3],
        rejects=[],
        ids=["a", "b", "c"],
        questions=["Where is Anna?", "Where is Ben?", "Where is Zoe?"],
        contexts=[CONTEXT],
        context_index=np.zeros(3, np.int64),
        answers=[(Answer("Paris", 14),), (Answer("Rome", AT),), ()],
    )
    predicted = {
        "predicted_answer": ["lives in Paris", "Paris", ""],
        "predicted_start": [5, 14, -1],
        "predicted_end": [19, 19, -1],
        "predicted_score": [0.5, 0.9, 0.8],
    }
    results = TaskResults(metrics={}, predictions=[])
    made = page_function("qa")(None, source, predicted, results)
    return {section.title: section for section in made}


def test_errors_are_counted_by_their_kind(sections):
    rows = {row[0]: row[1] for row in sections["How answers go wrong"].rows}
    assert rows == {"right": 1, "more words than the answer": 1, "no word of the answer": 1}


def test_wrong_answers_are_marked_beside_the_right_ones(sections):
    far, near = sections["Wrong answers"].examples
    assert far.facts["predicted"] == "Paris" and near.facts["predicted"] == "lives in Paris"
    assert near.marks["context"] == [Mark(5, 19, "wrong"), Mark(14, 19, "missed")]
    # The right answer is too far away to be shown.
    assert far.marks["context"] == [Mark(14, 19, "wrong")] and "Rome" not in far.texts["context"]
    assert far.texts["context"].endswith("…")


def test_lengths_of_answers_are_of_questions_that_have_one(sections):
    (row,) = sections["By length of the answer"].rows
    assert row[:2] == ["1", 2]


def test_questions_without_a_line_of_their_own_are_named_by_their_id():
    source = Questions(
        source="q.json",
        lines=[1, 1],
        rejects=[],
        ids=["first", "second"],
        questions=["Where is Anna?", "Where is Ben?"],
        contexts=[CONTEXT],
        context_index=np.zeros(2, np.int64),
        answers=[(Answer("Paris", 14),), ()],
    )
    predicted = {
        "predicted_answer": ["", ""],
        "predicted_start": [-1, -1],
        "predicted_end": [-1, -1],
        "predicted_score": [0.5, 0.9],
    }
    *_, wrong = page_function("qa")(
        None, source, predicted, TaskResults(metrics={}, predictions=[])
    )
    (example,) = wrong.examples
    assert example.line is None and example.facts["id"] == "first"
    assert example.marks["context"] == [Mark(14, 19, "missed")]

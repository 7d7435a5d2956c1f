"""Wrong places of answers are rejected in training, and warned about in evaluation."""

import io
import json

import pytest

from bert_tf.base.console import Console
from bert_tf.tasks.question_answering.question_files import Answer, QuestionColumns
from bert_tf.tasks.question_answering.rows import place_fault, read_questions

CONTEXT = "the city, the old city and the new city"
COLUMNS = QuestionColumns(
    question="question", context="context", answer="answer", answer_start="answer_start"
)


@pytest.mark.parametrize(
    ("text", "start", "found"),
    [
        ("city", 18, None),
        ("city", 0, "'city' at 0, where the context has 'the '; it has the answer at 4"),
        ("city", 12, "'city' at 12, where the context has 'e ol'; it has the answer at 18"),
        ("city", 20, "'city' at 20, where the context has 'ty a'; it has the answer at 18"),
        ("city", 99, "'city' at 99, where the context has ''; it has the answer at 35"),
    ],
)
def test_the_nearest_place_is_named(text, start, found):
    fault = place_fault(Answer(text, start), CONTEXT)
    assert fault == (None if found is None else ("answer is not at its start", found))


def test_an_answer_that_is_nowhere():
    assert place_fault(Answer("town", 4), CONTEXT) == (
        "answer is not in the context",
        "'town' at 4, where the context has 'city'",
    )


def test_evaluation_questions_are_kept_and_reported_in_a_line_each_kind(tmp_path):
    path = tmp_path / "dev.jsonl"
    found = [
        (["city"], [18]),
        (["town"], [4]),
        (["town", "city"], [4, 4]),
        ([], []),
        (["The City."], []),
    ]
    found += [(["x"], [0])] * 5
    with path.open("w") as stream:
        for answers, starts in found:
            row = {"question": "where?", "context": CONTEXT}
            stream.write(json.dumps({**row, "answer": answers, "answer_start": starts}) + "\n")
    log = io.StringIO()
    questions = read_questions(path, COLUMNS, check_offsets=False, console=Console(log))
    assert len(questions) == len(found)
    assert log.getvalue().splitlines() == [
        f"warning: {path}: 6 of 10 questions have an answer that is not in the context, so that no "
        "prediction can match it exactly: line 2, line 6, line 7, line 8, line 9 and 1 more",
        f"warning: {path}: 1 of 10 questions have an answer that is not at its start; metrics "
        "compare its text, and the loss leaves it out: line 3",
    ]

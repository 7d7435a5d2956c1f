"""Answers as exact slices of contexts, their ranking, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.data.text.host_wordpiece import TokenizedTexts
from bert_tf.serving.signatures import NO_SPAN_ODDS, AnswerRules
from bert_tf.tasks.question_answering.spans import SpanCandidates, choose_answers

CONTEXTS = ["Aé, bc 上", "x", ""]
TOKENS = TokenizedTexts(
    ids=np.zeros(5, np.int32),
    offsets=np.array([0, 4, 5, 5]),
    first_characters=np.array([0, 2, 4, 7, 0]),
    last_characters=np.array([2, 3, 6, 8, 1]),
)
CANDIDATES = SpanCandidates(  # none of the third question
    question=np.array([0, 0, 1]),
    first=np.array([2, 3, 0]),
    last=np.array([2, 3, 0]),
    score=np.array([3.0, 2.0, 1.0], np.float32),
)


def chosen(null, **rules):
    values = {"may_be_unanswerable": True, "null_threshold": 0.0, "sentence_margin": 0.0}
    return choose_answers(
        CANDIDATES,
        np.array(null),
        CONTEXTS,
        TOKENS,
        np.arange(3),
        AnswerRules(**{**values, **rules}),
    )


def test_answers_are_slices_of_the_context():
    answers = chosen([0.0, 0.0, 0.0], may_be_unanswerable=False)
    assert answers["predicted_answer"] == ["bc", "x", ""]
    assert answers["predicted_start"].tolist() == [4, 0, -1]
    assert answers["predicted_end"].tolist() == [6, 1, -1]
    assert answers["predicted_null_odds"].tolist() == [-3.0, -1.0, NO_SPAN_ODDS]
    best = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(answers["predicted_score"], [best, 1.0, 1.0])
    assert answers["predicted_nbest"] == [
        [
            {"text": "bc", "start": 4, "end": 6, "probability": pytest.approx(best, abs=1e-6)},
            {"text": "上", "start": 7, "end": 8, "probability": pytest.approx(1 - best, abs=1e-6)},
        ],
        [{"text": "x", "start": 0, "end": 1, "probability": 1.0}],
        [{"text": "", "start": None, "end": None, "probability": 1.0}],
    ]


@pytest.mark.parametrize(("threshold", "text"), [(0.0, ""), (1.9, ""), (2.0, "x"), (5.0, "x")])
def test_no_answer_where_the_null_score_wins_by_more_than_the_threshold(threshold, text):
    answers = chosen([2.5, 3.0, 0.0], null_threshold=threshold)
    assert answers["predicted_answer"] == ["bc", text, ""]
    assert answers["predicted_null_odds"][1] == 2.0
    best = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(answers["predicted_score"][1], 1 - best if text else best)
    assert answers["predicted_score"][2] == 1.0
    assert [[entry["text"] for entry in ranking] for ranking in answers["predicted_nbest"]] == [
        ["bc", "", "上"],  # whatever the threshold
        ["", "x"],
        [""],
    ]


SENTENCES = "Built in 1873. The Bridge was 5 m."
#            0         1         2         3
SPANS = SpanCandidates(
    question=np.zeros(3, int),
    first=np.array([1, 1, 2]),
    last=np.array([2, 0, 2]),
    score=np.array([5.0, 4.5, 3.0], np.float32),
)


@pytest.mark.parametrize(
    ("margin", "text"),
    [(0.0, "1873. The"), (0.4, "1873. The"), (0.5, "1873"), (9.0, "1873")],
)
def test_an_answer_over_the_end_of_a_sentence_yields_to_one_that_is_almost_as_good(margin, text):
    tokens = TokenizedTexts(
        ids=np.zeros(3, np.int32),
        offsets=np.array([0, 3]),
        first_characters=np.array([9, 9, 15]),
        last_characters=np.array([13, 13, 18]),
    )
    rules = AnswerRules(may_be_unanswerable=True, null_threshold=0.0, sentence_margin=margin)
    answers = choose_answers(SPANS, np.array([4.9]), [SENTENCES], tokens, np.zeros(1, int), rules)
    assert answers["predicted_answer"] == [text]
    ranked = (
        ["1873", "1873. The", "", "The"] if text == "1873" else ["1873. The", "", "1873", "The"]
    )
    (ranking,) = answers["predicted_nbest"]
    assert [entry["text"] for entry in ranking] == ranked
    found = next(entry for entry in ranking if entry["text"] == text)
    assert answers["predicted_score"][0] == pytest.approx(found["probability"], abs=1e-6)
    assert answers["predicted_null_odds"][0] == pytest.approx(-0.1)  # that of the best span

"""The best null threshold, as the official script of SQuAD 2.0 defines it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.question_answering.metrics import (
    SpanScores,
    best_threshold,
    threshold_metrics,
)

ODDS = st.floats(-20, 20, width=32)
QUESTIONS = st.lists(
    st.tuples(ODDS, st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans(), st.booleans()),
    min_size=1,
    max_size=12,
    unique_by=lambda question: question[0],
)


def find_best_thresh(preds, scores, na_probs, qid_to_has_ans):
    """Copied from evaluate-v2.0.py (Rajpurkar et al. 2018)."""
    num_no_ans = sum(1 for k in qid_to_has_ans if not qid_to_has_ans[k])
    cur_score = num_no_ans
    best_score = cur_score
    best_thresh = 0.0
    qid_list = sorted(na_probs, key=lambda k: na_probs[k])
    for qid in qid_list:
        if qid not in scores:
            continue
        diff = scores[qid] if qid_to_has_ans[qid] else -1 if preds[qid] else 0
        cur_score += diff
        if cur_score > best_score:
            best_score = cur_score
            best_thresh = na_probs[qid]
    return 100.0 * best_score / len(scores), best_thresh


def spans_of(questions):
    odds, scores, is_text, has_answer = (
        np.array(values) for values in zip(*questions, strict=True)
    )
    scores = np.where(is_text & has_answer, scores, 0.0)
    return SpanScores(
        is_text=is_text, exact_match=scores == 1.0, f1=scores, null_odds=odds, has_answer=has_answer
    )


@given(QUESTIONS)
def test_the_threshold_is_the_official_one(questions):
    spans = spans_of(questions)
    preds = {number: "text" if there else "" for number, there in enumerate(spans.is_text)}
    percentage, threshold = find_best_thresh(
        preds,
        dict(enumerate(spans.f1)),
        dict(enumerate(spans.null_odds)),
        dict(enumerate(spans.has_answer)),
    )
    best = best_threshold(spans, spans.f1)
    assert best.percentage == pytest.approx(percentage)
    if best.percentage > 100 * (~spans.has_answer).mean() + 1e-6:
        assert best.least == threshold
    else:  # nothing is answered, for which the script gives 0
        assert best.between < spans.null_odds.min()


@given(QUESTIONS, st.lists(ODDS))
def test_no_other_threshold_is_better(questions, others):
    """Ties are tried, too; the official script breaks them by the order of questions."""
    spans = spans_of([*questions, *questions[:3]])
    # An empty answer to a question without one is right, unless the script counts it at once.
    f1 = np.where(spans.has_answer | spans.is_text, spans.f1, 1.0)
    best = best_threshold(spans, f1)
    for threshold in (best.least, best.between):
        assert 100 * spans.with_threshold(f1, threshold).mean() == pytest.approx(best.percentage)
    for threshold in (*others, *spans.null_odds, -100, 100):
        assert 100 * spans.with_threshold(f1, threshold).mean() <= best.percentage + 1e-9


def ranking(*texts):
    return [{"text": text, "start": 0 if text else None} for text in texts]


@pytest.mark.parametrize("written", [list, json.dumps])
def test_metrics_of_other_thresholds(written):
    rankings = [ranking("Lima", ""), ranking("", "Peru"), ranking("", "in China"), ranking("")]
    predicted = {
        "predicted_nbest": [written(entries) for entries in rankings],
        "predicted_null_odds": [-2.0, 1.0, 2.0, 3.0],
    }
    spans = SpanScores.of(predicted, [["Lima"], ["Peru"], [], []])
    assert spans.is_text.tolist() == [True, True, True, False]
    assert spans.f1.tolist() == [1.0, 1.0, 0.0, 1.0]
    assert threshold_metrics(spans, 1.5) == {
        "null_threshold": 1.5,
        "exact_match_untuned": 75.0,
        "f1_untuned": 75.0,
        "best_exact": 100.0,
        "best_exact_thresh": 1.0,
        "best_f1": 100.0,
        "best_f1_thresh": 1.0,
    }

"""The graph's answers and rankings are those of the host for random scores."""

import json

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.text.host_wordpiece import TokenizedTexts
from bert_tf.serving.graphs.question_answering import SpanTexts, choose_answers
from bert_tf.serving.graphs.span_ranking import RankedSpans
from bert_tf.serving.signatures import AnswerRules
from bert_tf.tasks.question_answering import spans as host_spans
from bert_tf.tasks.question_answering.spans import SpanCandidates

CONTEXT = 'it was over. The "end" \\ of\tall\n\n日本。É \x01\x1f\0 5 km! So'
SPANS = [(first, last) for first in range(len(CONTEXT)) for last in range(first, len(CONTEXT))]


@st.composite
def scored_spans(draw):
    """Spans of up to four questions, a token a character, with distinct scores."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    question = np.repeat(np.arange(len(counts)), counts)
    chosen = generator.choice(len(SPANS), len(question), replace=False)
    score = generator.normal(size=len(question)).astype(np.float32)
    order = np.lexsort((-score, question))
    first, last = np.array(SPANS)[chosen].T
    return (
        SpanCandidates(question=question, first=first, last=last, score=score[order]),
        generator.normal(size=len(counts)).astype(np.float32),
    )


RULES = st.builds(
    AnswerRules,
    may_be_unanswerable=st.booleans(),
    null_threshold=st.sampled_from([-3.0, 0.0, 2.0]),
    sentence_margin=st.sampled_from([0.0, 0.5, 9.0]),
)


@pytest.mark.slow
@fewer_examples(0.83)
@given(scored_spans(), RULES)
def test_answers_equal_those_of_the_numpy_rules(scored, rules):
    candidates, null = scored
    places = np.arange(len(CONTEXT))
    tokens = TokenizedTexts(
        ids=np.zeros(len(CONTEXT), np.int32),
        offsets=np.array([0, len(CONTEXT)]),
        first_characters=places,
        last_characters=places + 1,
    )
    wanted = host_spans.choose_answers(
        candidates, null, [CONTEXT], tokens, np.zeros(len(null), int), rules
    )
    texts = [
        CONTEXT[first : last + 1]
        for first, last in zip(candidates.first, candidates.last, strict=True)
    ]
    spans = RankedSpans(
        question=tf.constant(candidates.question, tf.int32),
        first=tf.constant(candidates.first, tf.int32),
        last=tf.constant(candidates.last, tf.int32),
        score=tf.constant(candidates.score, tf.float64),
    )
    found = choose_answers(
        spans,
        SpanTexts(tf.constant(texts, tf.string), spans.first, spans.last + 1),
        tf.constant(null, tf.float64),
        rules,
    )
    answers = [text.decode() for text in found["predicted_answer"].numpy()]
    assert answers == wanted["predicted_answer"]
    for name in ("predicted_start", "predicted_end"):
        np.testing.assert_array_equal(found[name], wanted[name])
    for name in ("predicted_score", "predicted_null_odds"):
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-6)
    rankings = found["predicted_nbest"].numpy()
    for ranking, entries in zip(rankings, wanted["predicted_nbest"], strict=True):
        assert json.loads(ranking) == [
            {**entry, "probability": pytest.approx(entry["probability"], abs=2e-6)}
            for entry in entries
        ]

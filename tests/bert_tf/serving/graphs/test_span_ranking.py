"""The graph's spans are those of the host for random logits."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.rows.windows import Windows
from bert_tf.serving.graphs.span_ranking import rank_spans, window_spans
from bert_tf.tasks.question_answering import spans as host_spans

LENGTH = 9


@st.composite
def scored_windows(draw):
    """Windows of one to three questions with distinct logits, so that no two spans tie."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    question = np.repeat(np.arange(len(counts)), counts)
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = len(question)
    return (
        Windows(
            question=question,
            start=generator.integers(0, 4, rows),
            length=generator.integers(0, 6, rows),
        ),
        generator.integers(2, 4, rows),
        generator.normal(size=(2, rows, LENGTH)).astype(np.float32),
    )


@pytest.mark.slow
@fewer_examples(0.42)
@given(scored_windows(), st.integers(1, 5), st.integers(1, 7))
def test_spans_equal_those_of_the_numpy_rules(scored, max_answer_length, n_best):
    windows, begins, (start, end) = scored
    limits = {"max_answer_length": max_answer_length, "n_best": n_best}
    spans = host_spans.window_spans(start, end, begins, windows.length, **limits)
    candidates = host_spans.question_spans(windows, *spans, n_best=n_best)

    first, last, score = window_spans(
        start,
        end,
        tf.constant(begins, tf.int32),
        tf.constant(windows.length, tf.int32),
        **limits,
    )
    question = tf.constant(windows.question, tf.int32)
    offset = tf.constant(windows.start, tf.int32)[:, None]
    ranked = rank_spans(question, first + offset, last + offset, score, **limits)
    np.testing.assert_array_equal(ranked.question, candidates.question)
    np.testing.assert_array_equal(ranked.first, candidates.first)
    np.testing.assert_array_equal(ranked.last, candidates.last)
    np.testing.assert_array_equal(ranked.score, candidates.score)


def test_a_span_of_two_windows_counts_once_with_its_best_score():
    ranked = rank_spans(
        tf.constant([0, 0]),
        tf.constant([[3, 4], [3, 0]]),
        tf.constant([[5, 4], [5, 0]]),
        tf.constant([[1.0, 0.5], [2.0, -np.inf]]),
        max_answer_length=3,
        n_best=5,
    )
    assert ranked.first.numpy().tolist() == [3, 4]
    assert ranked.score.numpy().tolist() == [2.0, 0.5]

"""The graph's spans are those of `answer_spans`, whatever the logits."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.data.rows.token_characters import TokenizedTexts
from bert_tf.data.rows.windows import Windows
from bert_tf.tasks.question_answering import answer_spans
from bert_tf.tasks.question_answering.answer_graph import choose_spans, rank_spans, window_spans

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


@settings(max_examples=25)
@given(
    scored_windows(),
    st.integers(1, 5),
    st.integers(1, 7),
    st.booleans(),
    st.sampled_from([-3.0, 0.0, 2.0]),
)
def test_chosen_spans_equal_those_of_the_numpy_rules(
    scored, max_answer_length, n_best, may_be_unanswerable, threshold
):
    windows, begins, (start, end) = scored
    questions = windows.question[-1] + 1
    limits = {"max_answer_length": max_answer_length, "n_best": n_best}
    cls = start[:, 0] + end[:, 0]

    spans = answer_spans.window_spans(start, end, begins, windows.length, **limits)
    candidates = answer_spans.question_spans(windows, *spans, n_best=n_best)
    places = np.arange(20)
    tokens = TokenizedTexts(  # a token a character
        ids=np.zeros(20, np.int32),
        offsets=np.array([0, 20]),
        first_characters=places,
        last_characters=places + 1,
    )
    wanted = answer_spans.choose_answers(
        candidates,
        answer_spans.null_scores(windows, cls, questions),
        ["." * 20],
        tokens,
        np.zeros(questions, np.int64),
        may_be_unanswerable=may_be_unanswerable,
        null_threshold=threshold,
    )

    question = tf.constant(windows.question, tf.int32)
    first, last, score = window_spans(
        start,
        end,
        tf.constant(begins, tf.int32),
        tf.constant(windows.length, tf.int32),
        **limits,
    )
    offset = tf.constant(windows.start, tf.int32)[:, None]
    ranked = rank_spans(question, first + offset, last + offset, score, **limits)
    null = tf.math.unsorted_segment_min(tf.cast(cls, tf.float64), question, questions)
    chosen = choose_spans(
        ranked, null, may_be_unanswerable=may_be_unanswerable, null_threshold=threshold
    )

    np.testing.assert_array_equal(ranked.question, candidates.question)
    np.testing.assert_array_equal(ranked.first, candidates.first)
    np.testing.assert_array_equal(ranked.last, candidates.last)
    np.testing.assert_array_equal(chosen.is_answered, wanted.starts >= 0)
    answered = chosen.is_answered.numpy()
    np.testing.assert_array_equal(chosen.first.numpy()[answered], wanted.starts[answered])
    np.testing.assert_array_equal(chosen.last.numpy()[answered] + 1, wanted.ends[answered])
    np.testing.assert_allclose(chosen.probability, wanted.scores, atol=1e-6)


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

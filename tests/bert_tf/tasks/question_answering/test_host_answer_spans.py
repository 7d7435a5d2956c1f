"""The best spans of windows and of questions."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.rows.windows import Windows
from bert_tf.serving.signatures import AnswerLengths
from bert_tf.tasks.question_answering.host import check_question_lengths, encode_questions
from bert_tf.tasks.question_answering.spans import null_scores, question_spans, window_spans


def brute_force_spans(starts, ends, begin, length, longest):
    """All allowed spans, the best first."""
    return sorted(
        (
            (float(starts[i] + ends[j]), i - begin, j - begin)
            for i in range(begin, begin + length)
            for j in range(i, min(i + longest, begin + length))
        ),
        reverse=True,
    )


def test_best_spans_are_those_of_a_search_through_all():
    random = np.random.default_rng(7)
    starts, ends = random.normal(size=(2, 6, 12)).astype(np.float32)
    begins, lengths = np.array([2, 3, 4, 2, 5, 2]), np.array([9, 8, 1, 0, 7, 10])
    first, last, score = window_spans(starts, ends, begins, lengths, max_answer_length=3, n_best=5)
    for row in range(6):
        expected = brute_force_spans(starts[row], ends[row], begins[row], lengths[row], 3)[:5]
        there = np.isfinite(score[row])
        found = sorted(zip(score[row], first[row], last[row], strict=True), reverse=True)
        assert [span[1:] for span in found[: there.sum()]] == [span[1:] for span in expected]


WINDOWS = Windows(
    question=np.array([0, 0, 1, 2]), start=np.array([0, 2, 0, 0]), length=np.array([3, 2, 1, 0])
)


def candidates():
    """Question 0: span (2, 2) in both windows, (3, 3) in the second; 1: (0, 0); 2 has none."""
    first = np.array([[2, 0], [0, 1], [0, 0], [0, 0]])
    score = np.array([[1.0, 0.5], [3.0, 2.0], [1.0, -np.inf], [-np.inf, -np.inf]], np.float32)
    return question_spans(WINDOWS, first, first, score, n_best=2)


def test_a_span_of_two_windows_counts_once_with_its_best_score():
    spans = candidates()
    assert spans.question.tolist() == [0, 0, 1]
    assert spans.first.tolist() == [2, 3, 0]
    assert spans.score.tolist() == [3.0, 2.0, 1.0]


def test_the_null_score_of_a_question_is_the_least_of_its_windows():
    assert null_scores(WINDOWS, np.array([9.0, 0.5, -1.0, 0.0]), 3).tolist() == [0.5, -1.0, 0.0]


# Questions and contexts as rows.


def test_rows_hold_question_and_context(tokenizer):
    encoded = encode_questions(
        tokenizer,
        ["Where is Shanghai?", "in?"],
        ["Shanghai, the city, is in China.", "."],
        np.array([0, 1]),
        AnswerLengths(
            max_seq_length=12,
            doc_stride=4,
            max_query_length=3,
            max_answer_length=30,
            n_best_size=20,
        ),
    )
    rows = [
        " ".join(tokenizer.vocab[token] for token in encoded.rows.ids[begin:end])
        for begin, end in zip(encoded.rows.offsets[:-1], encoded.rows.offsets[1:], strict=True)
    ]
    assert rows == [
        "[CLS] where is shanghai [SEP] shanghai , the city , is [SEP]",
        "[CLS] where is shanghai [SEP] , is in china . [SEP]",
        "[CLS] in ? [SEP] . [SEP]",
    ]
    assert encoded.rows.second_starts.tolist() == [5, 5, 4]
    assert encoded.context_begins.tolist() == [5, 5, 4]


def test_a_question_may_not_fill_the_row():
    check_question_lengths(384, 64)
    with pytest.raises(UsageError, match="use at least 75"):
        check_question_lengths(64, 64)

"""Windows over contexts, and the answers in them."""

from __future__ import annotations

import numpy as np
import pytest
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.rows.windows import (
    answer_tokens,
    cut_windows,
    window_targets,
)
from bert_tf.data.text.host_wordpiece import TokenizedTexts


def test_windows_of_the_docstring():
    windows = cut_windows(np.array([9, 0, 5]), np.array([5, 5, 5]), stride=3)
    assert windows.question.tolist() == [0, 0, 0, 1, 2]
    assert windows.start.tolist() == [0, 3, 6, 0, 0]
    assert windows.length.tolist() == [5, 5, 3, 0, 5]


def reference_windows(context: int, room: int, stride: int) -> list[tuple[int, int]]:
    """google-research/bert run_squad.py, `convert_examples_to_features`, in its own words."""
    spans = []
    start = 0
    while start < context:
        length = min(context - start, room)
        spans.append((start, length))
        if start + length == context:
            break
        start += min(length, stride)
    return spans or [(0, 0)]


@given(
    lengths=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 20)), min_size=1, max_size=20),
    max_seq_length=st.integers(24, 100),
    doc_stride=st.integers(1, 150),
)
def test_windows_are_those_of_the_reference_and_cover_every_token(
    lengths, max_seq_length, doc_stride
):
    contexts, questions = np.array(lengths).T
    windows = cut_windows(contexts, max_seq_length - 3 - questions, stride=doc_stride)
    for question, (context, asked) in enumerate(lengths):
        mine = windows.question == question
        spans = list(zip(windows.start[mine].tolist(), windows.length[mine].tolist(), strict=True))
        assert spans == reference_windows(context, max_seq_length - 3 - asked, doc_stride)
        covered = np.zeros(context, bool)
        for start, length in spans:
            covered[start : start + length] = True
        assert covered.all()


texts = st.text(
    st.sampled_from(
        [*"abcdef", " ", "\n", "é", "É", "上", "😀", "\u0301", "ﬁ", "İ", "ß", "\uff21", ","]
    ),
    max_size=40,
)


@pytest.mark.slow
@fewer_examples(0.33)
@given(context=texts, bounds=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_tokens_of_an_answer_are_those_it_touches(tokenizer, context, bounds):
    start, end = min(*bounds, len(context)), min(max(bounds), len(context))
    tokens = tokenizer.tokenize_with_characters(["abc, def", context, "", "abc"])
    first, last = answer_tokens(tokens, np.array([1, 3]), np.array([start, 0]), np.array([end, 1]))
    mine = slice(tokens.offsets[1], tokens.offsets[2])
    touched = np.flatnonzero(
        (tokens.first_characters[mine] < end) & (tokens.last_characters[mine] > start)
    )
    expected = (touched[0], touched[-1]) if len(touched) and end > start else (-1, -1)
    assert (first[0], last[0]) == expected
    assert (first[1], last[1]) == (0, 0)


def test_answer_beyond_the_last_token_touches_none():
    tokens = TokenizedTexts(
        ids=np.zeros(2, np.int32),
        offsets=np.array([0, 1, 2]),
        first_characters=np.array([0, 0]),
        last_characters=np.array([3, 3]),
    )
    first, last = answer_tokens(tokens, np.array([0, 1]), np.array([4, 9]), np.array([6, 10]))
    assert first.tolist() == last.tolist() == [-1, -1]


def test_targets_point_into_windows_that_hold_the_whole_answer():
    windows = cut_windows(np.array([9, 9]), 5, stride=3)
    starts, ends = window_targets(
        windows, np.array([2, 2]), first_tokens=np.array([4, -1]), last_tokens=np.array([5, -1])
    )
    assert starts.tolist() == [0, 5, 0, 0, 0, 0]
    assert ends.tolist() == [0, 6, 0, 0, 0, 0]

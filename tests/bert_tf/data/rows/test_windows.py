"""Windows over contexts, and the way between characters and pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.data.rows.encoded_rows import encode_texts
from bert_tf.data.rows.question_rows import (
    check_question_lengths,
    encode_questions,
    tokenize_with_characters,
)
from bert_tf.data.rows.windows import (
    Pieces,
    answer_pieces,
    characters_at_bytes,
    context_windows,
    window_targets,
)
from bert_tf.data.text.wordpiece import WordPieceTokenizer

WORDS = [
    "where",
    "is",
    "the",
    "city",
    "shanghai",
    "in",
    "china",
    "cafe",
    "##s",
    "?",
    ".",
    ",",
    "上",
]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghij"]
VOCAB += ["##" + letter for letter in "abcdefghij"]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(VOCAB, lowercase=True)


def test_windows_of_the_docstring():
    windows = context_windows(
        np.array([9, 0, 5]), np.array([2, 2, 2]), max_seq_length=10, doc_stride=3
    )
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
def test_windows_are_those_of_the_reference_and_cover_every_piece(
    lengths, max_seq_length, doc_stride
):
    contexts, questions = np.array(lengths).T
    windows = context_windows(
        contexts, questions, max_seq_length=max_seq_length, doc_stride=doc_stride
    )
    for question, (context, asked) in enumerate(lengths):
        mine = windows.question == question
        spans = list(zip(windows.start[mine].tolist(), windows.length[mine].tolist(), strict=True))
        assert spans == reference_windows(context, max_seq_length - 3 - asked, doc_stride)
        covered = np.zeros(context, bool)
        for start, length in spans:
            covered[start : start + length] = True
        assert covered.all()


def test_rows_hold_question_and_context(tokenizer):
    encoded = encode_questions(
        tokenizer,
        ["Where is Shanghai?", "in?"],
        ["Shanghai, the city, is in China.", "."],
        np.array([0, 1]),
        max_seq_length=12,
        doc_stride=4,
        max_query_length=3,
    )
    rows = [
        " ".join(VOCAB[piece] for piece in encoded.rows.ids[begin:end])
        for begin, end in zip(encoded.rows.offsets[:-1], encoded.rows.offsets[1:], strict=True)
    ]
    assert rows == [
        "[CLS] where is shanghai [SEP] shanghai , the city , is [SEP]",
        "[CLS] where is shanghai [SEP] , is in china . [SEP]",
        "[CLS] in ? [SEP] . [SEP]",
    ]
    assert encoded.rows.second_starts.tolist() == [5, 5, 4]
    assert encoded.context_begins.tolist() == [5, 5, 4]


texts = st.text(
    st.sampled_from(
        [*"abcdef", " ", "\n", "é", "É", "上", "😀", "\u0301", "ﬁ", "İ", "ß", "\uff21", ","]
    ),
    max_size=40,
)


@settings(max_examples=15)
@given(contexts=st.lists(texts, min_size=1, max_size=6))
def test_characters_of_pieces_slice_the_text(tokenizer, contexts):
    pieces = tokenize_with_characters(tokenizer, contexts)
    for index, context in enumerate(contexts):
        alone = tokenize_with_characters(tokenizer, [context])
        mine = slice(pieces.offsets[index], pieces.offsets[index + 1])
        np.testing.assert_array_equal(pieces.first_characters[mine], alone.first_characters)
        np.testing.assert_array_equal(pieces.last_characters[mine], alone.last_characters)
        first, last = alone.first_characters, alone.last_characters
        assert (np.diff(first) >= 0).all()
        assert (np.diff(last) >= 0).all()
        assert (first <= last).all()
        assert (last <= len(context)).all()
        uncovered = set(range(len(context)))
        for begin, end, piece in zip(first, last, alone.ids, strict=True):
            assert context[begin:end].strip() == context[begin:end]
            uncovered -= set(range(begin, end))
            if VOCAB[piece] in ("a", "##a", ","):
                # tensorflow_text may count a stripped accent to the piece before it.
                assert context[begin:end].lower().rstrip("\u0301") in ("a", "\uff41", ",")
        # An accent without a letter is stripped and belongs to no piece.
        assert all(context[place].isspace() or context[place] == "\u0301" for place in uncovered)


@settings(max_examples=20)
@given(context=texts, bounds=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_pieces_of_an_answer_are_those_it_touches(tokenizer, context, bounds):
    start, end = min(*bounds, len(context)), min(max(bounds), len(context))
    pieces = tokenize_with_characters(tokenizer, ["abc, def", context, "", "abc"])
    first, last = answer_pieces(pieces, np.array([1, 3]), np.array([start, 0]), np.array([end, 1]))
    mine = slice(pieces.offsets[1], pieces.offsets[2])
    touched = np.flatnonzero(
        (pieces.first_characters[mine] < end) & (pieces.last_characters[mine] > start)
    )
    expected = (touched[0], touched[-1]) if len(touched) and end > start else (-1, -1)
    assert (first[0], last[0]) == expected
    assert (first[1], last[1]) == (0, 0)


def test_answer_beyond_the_last_piece_touches_none():
    pieces = Pieces(
        ids=np.zeros(2, np.int32),
        offsets=np.array([0, 1, 2]),
        first_characters=np.array([0, 0]),
        last_characters=np.array([3, 3]),
    )
    first, last = answer_pieces(pieces, np.array([0, 1]), np.array([4, 9]), np.array([6, 10]))
    assert first.tolist() == last.tolist() == [-1, -1]


def test_targets_point_into_windows_that_hold_the_whole_answer():
    windows = context_windows(np.array([9, 9]), np.array([2, 2]), max_seq_length=10, doc_stride=3)
    starts, ends = window_targets(
        windows, np.array([2, 2]), first_pieces=np.array([4, -1]), last_pieces=np.array([5, -1])
    )
    assert starts.tolist() == [0, 5, 0, 0, 0, 0]
    assert ends.tolist() == [0, 6, 0, 0, 0, 0]


def test_bytes_to_characters():
    texts = ["aé😀", "", "上b"]
    encoded = [text.encode() for text in texts]
    owners = np.array([0, 0, 0, 0, 2, 2, 2])
    offsets = np.array([0, 1, 3, 7, 0, 3, 4])
    assert characters_at_bytes(encoded, owners, offsets).tolist() == [0, 1, 2, 3, 0, 1, 2]


def test_padded_batch(tokenizer):
    rows = encode_texts(tokenizer, ["a", "a b c"], ["b", "d"], max_seq_length=7)
    batch = rows.padded(np.array([1, 0]), length=8, pad_id=0, batch_size=3)
    a, b, c, d = (VOCAB.index(letter) for letter in "abcd")
    assert batch["input_word_ids"].tolist() == [
        [2, a, b, c, 3, d, 3, 0],
        [2, a, 3, b, 3, 0, 0, 0],
        [0] * 8,
    ]
    assert batch["input_mask"].tolist() == [[1] * 7 + [0], [1] * 5 + [0] * 3, [0] * 8]
    assert batch["input_type_ids"].tolist() == [
        [0, 0, 0, 0, 0, 1, 1, 0],
        [0, 0, 0, 1, 1, 0, 0, 0],
        [0] * 8,
    ]


def test_single_texts_have_one_segment(tokenizer):
    rows = encode_texts(tokenizer, ["a b", ""], None, max_seq_length=128)
    assert rows.offsets.tolist() == offsets_of(np.array([4, 2])).tolist()
    assert not rows.padded(np.array([0, 1]), length=4, pad_id=0)["input_type_ids"].any()


def test_a_question_may_not_fill_the_row():
    check_question_lengths(384, 64)
    with pytest.raises(UsageError, match="use at least 75"):
        check_question_lengths(64, 64)

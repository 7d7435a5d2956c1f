"""Questions and contexts as rows."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.serving.signatures import AnswerLengths
from bert_tf.tasks.question_answering.host import (
    check_question_lengths,
    encode_questions,
)


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

"""The graph's windows are those of `bert_tf.data.rows.windows`."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.data.rows import windows
from bert_tf.data.text.host_wordpiece import TokenizedTexts
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.graphs.question_answering import window_rows

LENGTHS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40)), min_size=1, max_size=5)
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]


def tokens_of(lengths: list[int], first_id: int) -> TokenizedTexts:
    ids = np.arange(first_id, first_id + sum(lengths), dtype=np.int32)
    nowhere = np.zeros(len(ids), np.int64)
    return TokenizedTexts(
        ids=ids,
        offsets=offsets_of(np.array(lengths)),
        first_characters=nowhere,
        last_characters=nowhere,
    )


@pytest.mark.slow
@fewer_examples(0.33)
@given(LENGTHS, st.integers(10, 30), st.integers(1, 40))
def test_rows_and_windows_equal_those_of_the_numpy_functions(lengths, max_seq_length, stride):
    questions = tokens_of([question for question, _ in lengths], 1000)
    contexts = tokens_of([context for _, context in lengths], 2000)
    cut = windows.cut_windows(
        contexts.lengths, max_seq_length - 3 - questions.lengths, stride=stride
    )
    wanted = windows.window_rows(
        cut, questions, contexts, np.arange(len(lengths)), cls_id=2, sep_id=3
    )

    got = window_rows(
        tf.RaggedTensor.from_row_splits(questions.ids, questions.offsets),
        tf.RaggedTensor.from_row_splits(contexts.ids, contexts.offsets),
        max_seq_length=max_seq_length,
        doc_stride=stride,
        tokenizer=WordPieceTokenizer(VOCAB, lowercase=True),
    )
    np.testing.assert_array_equal(got.question, cut.question)
    np.testing.assert_array_equal(got.start, cut.start)
    np.testing.assert_array_equal(got.length, cut.length)
    np.testing.assert_array_equal(got.context_begin, questions.lengths[cut.question] + 2)
    np.testing.assert_array_equal(got.word_ids.flat_values, wanted.ids)
    np.testing.assert_array_equal(got.word_ids.row_splits, wanted.offsets)
    np.testing.assert_array_equal(
        tf.reduce_sum(1 - got.type_ids, axis=1), np.minimum(wanted.second_starts, wanted.lengths)
    )

"""Rows of choices share the tokens of contexts and questions, and are those of joined texts."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.text.wordpiece import pack_pairs
from bert_tf.serving.graphs.multiple_choice import choice_rows
from bert_tf.tasks.multiple_choice.host import MultipleChoiceHost

PARTS = st.sampled_from(["good", "bad", "it", " ", "  ", ".", ",", "?", "é", "北", "\u0301", "\n"])
TEXTS = st.lists(PARTS, max_size=10).map("".join)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, st.lists(TEXTS, min_size=3, max_size=3)), min_size=1)


@pytest.mark.slow
@pytest.mark.parametrize("names", [("context",), ("context", "question")])
@given(rows=ROWS, most=st.integers(4, 16))
@fewer_examples(0.3)
def test_rows_are_those_of_joined_texts(tokenizer, rows, most, names):
    contexts, questions, choices = (list(column) for column in zip(*rows, strict=True))
    columns = {"context": contexts, "question": questions, "choices": choices}
    columns = {name: columns[name] for name in (*names, "choices")}
    encoded = MultipleChoiceHost(input_names=tuple(columns), max_seq_length=most).encode(
        tokenizer, columns
    )
    places = np.argwhere(np.array(choices, object) != "").reshape(-1, 2)
    np.testing.assert_array_equal(encoded.details, places)

    questions = [f"{text} " if "question" in names else "" for text in questions]
    tokens = [
        tokenizer.tokenize(tf.constant([text.encode() for text in texts], tf.string))
        for texts in (
            [contexts[row] for row, _ in places],
            [questions[row] + choices[row][number] for row, number in places],
        )
    ]
    word_ids, type_ids = pack_pairs(*tokens, max_seq_length=most, tokenizer=tokenizer)
    sequences = encoded.sequences
    assert sequences.ids.tolist() == word_ids.flat_values.numpy().tolist()
    assert sequences.offsets.tolist() == word_ids.row_splits.numpy().tolist()
    np.testing.assert_array_equal(
        sequences.lengths - sequences.second_starts, tf.reduce_sum(type_ids, axis=1)
    )
    whole = sum(text.row_lengths().numpy() for text in tokens) + 3
    np.testing.assert_array_equal(sequences.lost_tokens, whole - sequences.lengths)

    texts = {
        name: tf.constant(np.vectorize(str.encode, otypes=[object])(np.array(values, object)))
        for name, values in columns.items()
    }
    made = choice_rows(tokenizer, texts, tf.constant(places), max_seq_length=most)
    np.testing.assert_array_equal(made.lengths, word_ids.row_lengths())
    for found, expected in zip(made.of(tf.range(len(places))), (word_ids, type_ids), strict=True):
        assert found.to_list() == expected.to_list()

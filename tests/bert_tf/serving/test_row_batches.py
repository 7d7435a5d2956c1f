"""Batches inside a graph: every row once, in its own place, within the budget."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.rows.encoded_rows import LENGTH_MULTIPLE, budgeted_batches
from bert_tf.serving.row_batches import map_row_batches, whole_rows

PAD, LONGEST = 9, 39


@tf.function(
    input_signature=[
        tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1),
        tf.TensorSpec([], tf.int32),
    ]
)
def sums_and_shapes(word_ids, batch_tokens):
    def forward(batch, chosen):
        rows, length = tf.unstack(tf.shape(batch["input_word_ids"]))
        mask = batch["input_mask"]
        total = tf.reduce_sum(batch["input_word_ids"] * mask, axis=1)
        padding = tf.reduce_sum(batch["input_word_ids"] * (1 - mask), axis=1)
        shape = tf.repeat(tf.stack([rows, length])[None], rows, axis=0)
        return total, padding, tf.concat([shape, chosen[:, None]], axis=1)

    return map_row_batches(
        forward,
        whole_rows(word_ids, tf.zeros_like(word_ids)),
        batch_tokens=batch_tokens,
        max_seq_length=LONGEST,
        pad_id=PAD,
        outputs=(
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([3], tf.int32),
        ),
    )


@pytest.mark.slow
@fewer_examples(0.5)
@given(st.lists(st.integers(1, LONGEST), max_size=20), st.integers(1, 200))
def test_every_row_keeps_its_place_and_batches_keep_to_the_budget(lengths, batch_tokens):
    rows = [list(range(1, length + 1)) for length in lengths]
    word_ids = tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)
    totals, padding, shapes = sums_and_shapes(word_ids, batch_tokens)
    assert totals.numpy().tolist() == [sum(row) for row in rows]
    for length, padded, (rows_in_batch, width, chosen) in zip(
        lengths, padding.numpy(), shapes.numpy(), strict=True
    ):
        assert padded == PAD * (width - length)
        assert width == min(LONGEST, -(-width // LENGTH_MULTIPLE) * LENGTH_MULTIPLE)
        assert rows_in_batch == 1 or rows_in_batch * width <= batch_tokens
        assert lengths[chosen] == length
    assert sorted(shapes.numpy()[:, 2]) == list(range(len(lengths)))
    # The graph cuts as the host does.
    for batch in budgeted_batches(
        np.array(lengths, np.int64), budget=batch_tokens, multiple=LENGTH_MULTIPLE
    ):
        assert (shapes.numpy()[batch, 0] == len(batch)).all()


@pytest.mark.slow
def test_equal_lengths_are_not_padded_beyond_the_multiple():
    word_ids = tf.constant(np.ones([5, 8], np.int32))
    _, _, shapes = sums_and_shapes(tf.RaggedTensor.from_tensor(word_ids), 24)
    assert shapes.numpy()[:, :2].tolist() == [[3, 8]] * 3 + [[2, 8]] * 2

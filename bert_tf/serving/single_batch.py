"""Rows as the one batch that a model is run on outside an exported graph, to compare the two."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bert_tf.data.rows.encoded_rows import EncodedRows


def single_batch(rows: EncodedRows, pad_id: int) -> dict[str, tf.Tensor]:
    """`input_word_ids`, `input_mask` and `input_type_ids`, int32 [rows, longest row].

    Args:
        rows: all of them go into the batch.
        pad_id: id of [PAD].
    """
    batch = rows.padded(np.arange(len(rows)), length=int(rows.lengths.max()), pad_id=pad_id)
    return {name: tf.constant(values) for name, values in batch.items()}

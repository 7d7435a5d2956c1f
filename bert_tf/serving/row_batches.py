"""Run a model over rows of any number and length inside a graph, in batches of similar length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.data.rows.encoded_rows import LENGTH_MULTIPLE, EncodedRows

# From a padded batch and the numbers of its rows to outputs; see `map_row_batches`
Forward = Callable[[dict[str, tf.Tensor], tf.Tensor], tuple[tf.Tensor, ...]]


class BatchRows(NamedTuple):
    """Rows for a model, which are made a batch at a time.

    Attributes:
        lengths: int32 [rows], tokens of each row.
        of: makes rows; from their numbers, int32 [n], to their word and type ids, ragged int32
            [n, (tokens)] each.
    """

    lengths: tf.Tensor
    of: Callable[[tf.Tensor], tuple[tf.RaggedTensor, tf.RaggedTensor]]


def whole_rows(word_ids: tf.RaggedTensor, type_ids: tf.RaggedTensor) -> BatchRows:
    """Return rows of these ids, ragged int32 [rows, (tokens)]."""
    return BatchRows(
        lengths=tf.cast(word_ids.row_lengths(), tf.int32),
        of=lambda chosen: (tf.gather(word_ids, chosen), tf.gather(type_ids, chosen)),
    )


class TensorRanges(NamedTuple):
    """A part of each row: a range of the tokens of all texts.

    Attributes:
        tokens: int32 [tokens of all texts].
        starts: int64 [rows], the first token of each range.
        lengths: int32 [rows], tokens of each range.
    """

    tokens: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor

    def of(self, chosen: tf.Tensor) -> tf.RaggedTensor:
        """Return the tokens of some rows, int32 [n], as ragged int32 [n, (tokens)]."""
        starts = tf.gather(self.starts, chosen)
        lengths = tf.cast(tf.gather(self.lengths, chosen), tf.int64)
        return tf.gather(self.tokens, tf.ragged.range(starts, starts + lengths))


def rows_of_ranges(
    first: Sequence[TensorRanges], second: Sequence[TensorRanges] = (), *, cls_id: int, sep_id: int
) -> BatchRows:
    """Return rows `[CLS] a [SEP]`, or `[CLS] a [SEP] b [SEP]`, of ranges of tokens.

    Use it for ranges that share tokens, such as a text with each of many choices: if all rows
    existed at once, they would take the product of the text's length and the number of choices.

    Args:
        first, second: ranges that are joined to a, and to b; () as `second` for rows without b.
        cls_id, sep_id: ids of [CLS] and [SEP].
    """
    parts = [first, second] if second else [first]

    def of(chosen: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        cls = tf.fill([tf.size(chosen), 1], cls_id)
        sep = tf.fill([tf.size(chosen), 1], sep_id)
        segments = [[*(ranges.of(chosen) for ranges in part), sep] for part in parts]
        segments[0].insert(0, cls)
        ids = [tf.concat(segment, axis=1) for segment in segments]
        types = [tf.zeros_like(segment) + number for number, segment in enumerate(ids)]
        return tf.concat(ids, axis=1), tf.concat(types, axis=1)

    lengths = tf.add_n([ranges.lengths for part in parts for ranges in part])
    return BatchRows(lengths=lengths + 1 + len(parts), of=of)


def map_row_batches(
    forward: Forward,
    rows: BatchRows,
    *,
    batch_tokens: tf.Tensor,
    max_seq_length: int,
    pad_id: int,
    outputs: tuple[tf.TensorSpec, ...],
    max_rows: int | None = None,
) -> tuple[tf.Tensor, ...]:
    """Run a model over rows, the longest first, and return its outputs in the order of the rows.

    A batch has as many rows of similar length as fit its budget of tokens. So neither memory nor
    padding grows with the number of rows or with the longest of them.

    Args:
        forward: the model; from `input_word_ids`, `input_mask`, `input_type_ids` (int32 [batch,
            length]) and the numbers of the batch's rows (int32 [batch]) to tensors [batch, …].
        rows: any number of rows, each with at least its special tokens.
        batch_tokens: int32 scalar, most of rows x padded length of a batch.
        max_seq_length: no row is padded to more, because the model may have no more positions.
        pad_id: id of [PAD].
        outputs: shape (without the row axis) and dtype of the results of `forward`.
        max_rows: most rows of a batch; None sets no limit.

    Returns:
        The results of `forward` for all rows, [rows, …] each.
    """
    order = tf.argsort(rows.lengths, direction="DESCENDING", stable=True)
    sorted_lengths = tf.gather(rows.lengths, order)
    count = tf.size(order)

    def run_batch(
        batch: tf.Tensor, begin: tf.Tensor, arrays: tuple[tf.TensorArray, ...]
    ) -> tuple[tf.Tensor, tf.Tensor, tuple[tf.TensorArray, ...]]:
        length = _rounded_up(sorted_lengths[begin])
        fitting = tf.maximum(batch_tokens // length, 1)
        if max_rows is not None:
            fitting = tf.minimum(fitting, max_rows)
        end = tf.minimum(begin + fitting, count)
        chosen = order[begin:end]
        length = tf.minimum(length, max_seq_length)
        padded = _padded(*rows.of(chosen), length=length, pad_id=pad_id)
        results = forward(padded, chosen)
        written = tuple(
            array.write(batch, result) for array, result in zip(arrays, results, strict=True)
        )
        return batch + 1, end, written

    arrays = tuple(
        tf.TensorArray(
            spec.dtype,
            size=0,
            dynamic_size=True,
            infer_shape=False,
            element_shape=[None, *spec.shape],
        )
        for spec in outputs
    )
    _, _, arrays = tf.while_loop(
        lambda _batch, begin, _arrays: begin < count,
        run_batch,
        (tf.constant(0), tf.constant(0), arrays),
        parallel_iterations=1,
    )
    place = tf.math.invert_permutation(order)
    return tuple(tf.gather(array.concat(), place) for array in arrays)


def _rounded_up(length: tf.Tensor) -> tf.Tensor:
    return (length + LENGTH_MULTIPLE - 1) // LENGTH_MULTIPLE * LENGTH_MULTIPLE


def _padded(
    word_ids: tf.RaggedTensor, type_ids: tf.RaggedTensor, *, length: tf.Tensor, pad_id: int
) -> dict[str, tf.Tensor]:
    shape = tf.stack([word_ids.nrows(out_type=tf.int32), length])
    mask = tf.sequence_mask(word_ids.row_lengths(), length, dtype=tf.int32)
    return {
        "input_word_ids": _dense(word_ids, shape, pad_id),
        "input_mask": tf.reshape(mask, shape),
        "input_type_ids": _dense(type_ids, shape, 0),
    }


def _dense(rows: tf.RaggedTensor, shape: tf.Tensor, fill: int) -> tf.Tensor:
    """Pad rows like `RaggedTensor.to_tensor`, to a width only known when the graph runs."""
    dense = rows.to_tensor(default_value=fill)
    missing = shape[1] - tf.shape(dense)[1]
    return tf.pad(dense, [[0, 0], [0, missing]], constant_values=fill)


def single_batch(rows: EncodedRows, pad_id: int) -> dict[str, tf.Tensor]:
    """Pad all rows into one batch: int32 [rows, longest row]."""
    batch = rows.padded(
        np.arange(len(rows)), length=int(rows.lengths.max(initial=2)), pad_id=pad_id
    )
    return {name: tf.constant(values) for name, values in batch.items()}

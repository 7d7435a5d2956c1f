"""Labeled rows as training batches whose order is a pure function of (seed, epoch)."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from bert_tf.data.rows.encoded_rows import epoch_batches, padded_length
from bert_tf.tasks.base.task import TaskData


class FinetuningInputs:
    """Training batches of similar lengths, or of any where the loss compares rows.

    Args:
        data: the rows.
        batch_size: rows per step; the last batch of an epoch is filled up with rows of weight 0.
        row_multiple: batches are filled up to a multiple of this (replicas x micro-batches).
        length_multiple: padded lengths are multiples of it.
        max_seq_length: tokens of the longest padded row.
        pad_id: id of [PAD].
        seed: any whole number.

    Attributes:
        steps_per_epoch: batches that hold every row once.
    """

    def __init__(
        self,
        data: TaskData,
        *,
        batch_size: int,
        row_multiple: int,
        length_multiple: int,
        max_seq_length: int,
        pad_id: int,
        seed: int,
    ):
        self._data = data
        self._batch_size = batch_size
        self._rows = -(-batch_size // row_multiple) * row_multiple
        self._length_multiple = length_multiple
        self._max_seq_length = max_seq_length
        self._pad_id = pad_id
        self._seed = seed
        self._lengths = data.rows.lengths
        self._sorted_by = np.zeros_like(self._lengths) if data.compares_rows else self._lengths
        self.steps_per_epoch = -(-len(data.rows) // batch_size)

    def batches(self, first_step: int) -> tf.data.Dataset:
        """Yields endless batches from a step on: int32 [rows, length] and targets."""
        example = self._batch(np.zeros(1, np.int64))
        signature = {
            name: tf.TensorSpec(
                (self._rows, *(None for _ in values.shape[1:])), tf.as_dtype(values.dtype)
            )
            for name, values in example.items()
        }
        return tf.data.Dataset.from_generator(
            functools.partial(self._generate, first_step), output_signature=signature
        )

    def position(self, first_step: int) -> dict[str, int]:
        """Returns epoch and batch where a step starts; number and checksum of the rows."""
        epoch, batch = divmod(first_step, self.steps_per_epoch)
        return {
            "epoch": epoch,
            "batch": batch,
            "rows": len(self._data.rows),
            "checksum": self._checksum,
        }

    @functools.cached_property
    def _checksum(self) -> int:
        checksum = zlib.crc32(np.ascontiguousarray(self._data.rows.ids).data)
        for values in (*self._data.targets.values(), *self._data.token_targets.values()):
            checksum = zlib.crc32(np.ascontiguousarray(values).data, checksum)
        return checksum

    def _generate(self, first_step: int) -> Iterator[dict[str, np.ndarray]]:
        epoch, skipped = divmod(first_step, self.steps_per_epoch)
        while True:
            order = epoch_batches(
                self._sorted_by, batch_size=self._batch_size, seed=self._seed, epoch=epoch
            )
            for chosen in order[skipped:]:
                yield self._batch(chosen)
            epoch, skipped = epoch + 1, 0

    def _batch(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        length = padded_length(
            self._lengths[chosen], self._length_multiple, most=self._max_seq_length
        )
        return self._data.batch(chosen, length=length, pad_id=self._pad_id, batch_size=self._rows)

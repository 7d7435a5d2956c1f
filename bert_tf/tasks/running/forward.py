"""Runs a model over rows without training it: sorted by length, in batches of a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Advance, Console
from bert_tf.base.processor import map_ahead
from bert_tf.base.wording import quantity
from bert_tf.cpu.cores import operations_at_once
from bert_tf.data.rows.encoded_rows import LENGTH_MULTIPLE, budgeted_batches, padded_length
from bert_tf.tasks.base.task import TaskData
from bert_tf.training.protocols import Batch


class ForwardPass:
    """A function of batches over all rows of a data set; traced once, run any number of times.

    Args:
        compute: from a batch of `TaskData.batch` to tensors.
        data: the rows.
        rows: how many of the file they are of.
        max_seq_length: tokens of the longest batch.
        pad_id: id of [PAD].
        batch_tokens: tokens per batch, padding included.
        max_rows: rows of the biggest batch; None for no limit.
        console: shows progress.
        action: names it there.
    """

    def __init__(
        self,
        compute: Callable[[Batch], Any],
        data: TaskData,
        *,
        rows: int,
        max_seq_length: int,
        pad_id: int,
        batch_tokens: int,
        max_rows: int | None,
        console: Console,
        action: str,
    ):
        self._data = data
        self._rows = rows
        self._max_seq_length = max_seq_length
        self._pad_id = pad_id
        self._console = console
        self._action = action
        self._owners = np.arange(len(data.rows)) if data.owners is None else data.owners
        self._batches = budgeted_batches(
            data.rows.lengths,
            budget=batch_tokens // data.rows.sequences_per_row,
            multiple=LENGTH_MULTIPLE,
            max_rows=max_rows,
        )
        example = self._batch(np.zeros(1, np.int64))
        self._compute = tf.function(
            compute,
            autograph=False,
            input_signature=[
                {
                    name: tf.TensorSpec([None] * values.ndim, tf.as_dtype(values.dtype))
                    for name, values in example.items()
                }
            ],
        )

    def __iter__(self) -> Iterator[tuple[np.ndarray, Any]]:
        """The rows of a batch, int [n], and what `compute` made of it."""
        done = 0
        unread = np.bincount(self._owners, minlength=self._rows)
        at_once = operations_at_once()
        outputs = map_ahead(self._outputs, self._batches, threads=at_once, depth=at_once)
        for chosen, computed in zip(self._batches, outputs, strict=True):
            yield chosen, computed
            np.subtract.at(unread, self._owners[chosen], 1)
            done += int((unread[np.unique(self._owners[chosen])] == 0).sum())
            self._console.progress(forward_progress(self._action, done, len(unread)))

    def in_row_order(self, parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Arrays [rows, …] of those of all batches, in the order in which they were yielded."""
        order = np.concatenate(self._batches)
        joined = {}
        for name in parts[0]:
            values = np.concatenate([part[name] for part in parts])
            joined[name] = np.empty_like(values)
            joined[name][order] = values
        return joined

    def _outputs(self, chosen: np.ndarray) -> Any:
        return self._compute(
            {name: tf.constant(values) for name, values in self._batch(chosen).items()}
        )

    def _batch(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        length = padded_length(
            self._data.rows.lengths[chosen], LENGTH_MULTIPLE, most=self._max_seq_length
        )
        return self._data.batch(chosen, length=length, pad_id=self._pad_id)


def forward_progress(action: str, done: int, total: int) -> Advance:
    """How far it is, in rows of the file."""
    return Advance(f"{action}: {done:,} of {quantity(total, 'row')}", done / max(total, 1))

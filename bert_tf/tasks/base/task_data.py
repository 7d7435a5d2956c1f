"""Labeled rows of a file, ready for the model of any task."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from bert_tf.base.arrays import flat_ranges, group_means
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.tasks.base.host_task import HostRows

ROW_WEIGHTS = "row_weights"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskData:
    """Labeled rows of a file, ready for a model.

    A row here is one of the model's; a row of the file may have several.

    Attributes:
        source: the rows as the task read them.
        rows: sequences of tokens. A long context has several rows here; a row with choices is one
            row of several sequences (`GroupedRows`).
        targets: arrays [rows, …] by their names in a batch.
        weights: float32 [rows]; 0 leaves a row out of the loss.
        token_targets: arrays [tokens] by their names in a batch, with a value for each token of
            `rows`. In a batch they are [rows, length], 0 for padding.
        owners: int64 [rows], number of the row of the file to which each belongs, ascending; None
            if each row of the file has one.
        averages_outputs: whether to average the reduced outputs of an owner's rows, so that
            `Task.fitted` and `Task.predict` see a row per row of the file.
        details: values that the task needs to turn outputs into predictions.
        compares_rows: whether the loss compares the rows of a batch. Batches are then drawn at
            random, since batches of similar lengths would never compare rows of different ones.
        notes: sentences for the user on the rows of the file.
        chance_loss: mean loss of the best prediction that ignores the texts; None if unknown.
    """

    source: Any
    rows: EncodedRows
    targets: dict[str, np.ndarray]
    weights: np.ndarray
    token_targets: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    owners: np.ndarray | None = None
    averages_outputs: bool = False
    details: Any = None
    compares_rows: bool = False
    notes: tuple[str, ...] = ()
    chance_loss: float | None = None

    @property
    def host_rows(self) -> HostRows:
        """The rows as a `HostTask` takes them."""
        return HostRows(sequences=self.rows, details=self.details)

    def renumbered(self, numbers: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Replace the ids of tokens, by a function of int32 [tokens]."""
        return dataclasses.replace(
            self, rows=dataclasses.replace(self.rows, ids=numbers(self.rows.ids))
        )

    def averaged(self, reduced: dict[str, np.ndarray]) -> tuple[TaskData, dict[str, np.ndarray]]:
        """Average reduced outputs [rows, …] by owner, if `averages_outputs`.

        Returns:
            Data with a target and weight for each row of the file, whose `rows` are the first of
            each owner, and the averages.
        """
        if self.owners is None or not self.averages_outputs:
            return self, reduced
        firsts, means = group_means(reduced, self.owners)
        data = dataclasses.replace(
            self,
            rows=self.rows.selected(firsts),
            targets={name: values[firsts] for name, values in self.targets.items()},
            weights=np.add.reduceat(self.weights, firsts),
            owners=None,
            averages_outputs=False,
        )
        return data, means

    def batch(
        self, chosen: np.ndarray, *, length: int, pad_id: int, batch_size: int | None = None
    ) -> dict[str, np.ndarray]:
        """Cut out model input, all targets and `row_weights`.

        Args:
            chosen: int [n], the rows.
            length: tokens to pad to, at least as many as the longest row has.
            pad_id: id of [PAD].
            batch_size: rows to pad to; None for only `chosen`.

        Returns:
            Arrays [batch_size, …] by name. Rows of padding are the last ones, and weigh 0.
        """
        batch = self.rows.padded(chosen, length=length, pad_id=pad_id, batch_size=batch_size)
        size = len(batch["input_mask"])
        for name, values in {**self.targets, ROW_WEIGHTS: self.weights}.items():
            column = np.zeros((size, *values.shape[1:]), values.dtype)
            column[: len(chosen)] = values[chosen]
            batch[name] = column
        if not self.token_targets:
            return batch
        tokens = flat_ranges(self.rows.offsets[chosen], self.rows.lengths[chosen])
        is_token = batch["input_mask"] == 1
        for name, values in self.token_targets.items():
            batch[name] = np.zeros((size, length), values.dtype)
            batch[name][is_token] = values[tokens]
        return batch

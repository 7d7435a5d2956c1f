"""Rows that are several sequences each, such as a question with each of its choices."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.arrays import flat_ranges
from bert_tf.data.rows.encoded_rows import EncodedRows


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupedRows(EncodedRows):
    """Model input of rows of one or more sequences, which `ids`, `offsets`, `second_starts` are of.

    Attributes:
        group_offsets: int64 [rows + 1]; row i has the sequences
            `group_offsets[i]` to `group_offsets[i + 1] - 1`.
    """

    group_offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.group_offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row's longest sequence, int64 [rows]."""
        return np.maximum.reduceat(np.diff(self.offsets), self.group_offsets[:-1])

    @property
    def group_sizes(self) -> np.ndarray:
        """Sequences of each row, int64 [rows]."""
        return np.diff(self.group_offsets)

    @property
    def sequences_per_row(self) -> int:
        """Sequences of the row that has most."""
        return int(self.group_sizes.max())

    def padded(
        self, rows: np.ndarray, *, length: int, pad_id: int, batch_size: int | None = None
    ) -> dict[str, np.ndarray]:
        """Cuts a batch out; see `EncodedRows.padded`.

        Returns:
            input_word_ids, input_mask and input_type_ids, int32 [batch_size, sequences, length],
            where `sequences` is that of the row of the batch that has most; the other rows are
            filled up with sequences of padding alone.
        """
        sizes = self.group_sizes[rows]
        width = int(sizes.max())
        sequences = EncodedRows(
            ids=self.ids, offsets=self.offsets, second_starts=self.second_starts
        ).padded(flat_ranges(self.group_offsets[rows], sizes), length=length, pad_id=pad_id)
        count = len(rows) if batch_size is None else batch_size
        places = flat_ranges(np.arange(len(rows)) * width, sizes)
        batch = {}
        for name, values in sequences.items():
            padding = pad_id if name == "input_word_ids" else 0
            padded = np.full((count * width, length), padding, values.dtype)
            padded[places] = values
            batch[name] = padded.reshape(count, width, length)
        return batch

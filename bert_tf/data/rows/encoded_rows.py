"""Rows of tokens of different lengths as flat arrays, and padded batches cut from them."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncodedRows:
    """Model input before padding.

    Attributes:
        ids: int32 [tokens of all rows], specials included.
        offsets: int64 [rows + 1]; row i is `ids[offsets[i]:offsets[i + 1]]`.
        second_starts: int32 [rows]; where in its row the second segment (type 1) begins, the row's
            length if there is none.
        lost_tokens: int64 [rows]; tokens of its texts that a row lacks because it would be too
            long; None where nothing is cut.
        owners: int64 [rows], the text that each is a part of, ascending; None where each row is one
            text or pair.
    """

    ids: np.ndarray
    offsets: np.ndarray
    second_starts: np.ndarray
    lost_tokens: np.ndarray | None = None
    owners: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_sequences(self) -> int:
        """Sequences of all rows."""
        return len(self.offsets) - 1

    @property
    def sequences_per_row(self) -> int:
        """Sequences of the row that has most."""
        return 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 [rows]."""
        return np.diff(self.offsets)

    def followed_by(self, other: EncodedRows) -> Self:
        """These rows and then others, each a text of its own."""
        lost = None
        if self.lost_tokens is not None and other.lost_tokens is not None:
            lost = np.concatenate([self.lost_tokens, other.lost_tokens])
        return dataclasses.replace(
            self,
            ids=np.concatenate([self.ids, other.ids]),
            offsets=np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            second_starts=np.concatenate([self.second_starts, other.second_starts]),
            lost_tokens=lost,
            owners=None,
        )

    def selected(self, rows: np.ndarray) -> Self:
        """Some of the rows, int [n], each a text of its own."""
        lengths = self.lengths[rows]
        return dataclasses.replace(
            self,
            ids=self.ids[flat_ranges(self.offsets[rows], lengths)],
            offsets=offsets_of(lengths),
            second_starts=self.second_starts[rows],
            lost_tokens=None if self.lost_tokens is None else self.lost_tokens[rows],
            owners=None,
        )

    def padded(
        self, rows: np.ndarray, *, length: int, pad_id: int, batch_size: int | None = None
    ) -> dict[str, np.ndarray]:
        """Cuts a batch out.

        Args:
            rows: int [n], which rows; none is longer than `length`.
            length: tokens of every row of the batch.
            pad_id: id of [PAD].
            batch_size: rows of the batch, rows of padding alone after the given ones (default n).

        Returns:
            input_word_ids, input_mask and input_type_ids, int32 [batch_size, length].
        """
        shape = (len(rows) if batch_size is None else batch_size, length)
        lengths = np.zeros(shape[0], np.int64)
        lengths[: len(rows)] = self.lengths[rows]
        places = np.arange(length)
        mask = places < lengths[:, None]
        word_ids = np.full(shape, pad_id, np.int32)
        word_ids[mask] = self.ids[flat_ranges(self.offsets[rows], lengths[: len(rows)])]
        type_ids = mask.copy()
        type_ids[: len(rows)] &= places >= self.second_starts[rows][:, None]
        return {
            "input_word_ids": word_ids,
            "input_mask": mask.astype(np.int32),
            "input_type_ids": type_ids.astype(np.int32),
        }

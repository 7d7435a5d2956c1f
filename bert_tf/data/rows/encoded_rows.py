"""Rows of tokens as flat arrays, their partition into batches, and padded batches."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of, unsigned_seed


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncodedRows:
    """Model input before padding.

    Attributes:
        ids: int32 [tokens of all rows], special tokens included.
        offsets: int64 [rows + 1]; row i is `ids[offsets[i]:offsets[i + 1]]`.
        second_starts: int32 [rows], where the second segment (type 1) begins in the row; the length
            of the row if there is none.
        lost_tokens: int64 [rows], tokens of the texts that were cut off; None if nothing is cut.
        owners: int64 [rows], ascending, the text that each row is a part of; None if each row is a
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
    def sequences_per_row(self) -> int:
        """Most sequences of a row."""
        return 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 [rows]."""
        return np.diff(self.offsets)

    def followed_by(self, other: EncodedRows) -> Self:
        """Return these rows and then other ones; each counts as a text of its own."""
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
        """Return some rows by number, int [n]; each counts as a text of its own."""
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
        """Cut out a batch.

        Args:
            rows: int [n], numbers of rows, none of which is longer than `length`.
            length: tokens of every row of the batch.
            pad_id: id of [PAD].
            batch_size: rows of the batch, filled up with rows of padding; None for n.

        Returns:
            input_word_ids, input_mask and input_type_ids, int32 [batch_size, length].
        """
        shape = (len(rows) if batch_size is None else batch_size, length)
        lengths = np.zeros(shape[0], np.int64)
        lengths[: len(rows)] = self.lengths[rows]
        places = np.arange(length)
        mask = places < lengths[:, None]  # bool [batch_size, length]
        word_ids = np.full(shape, pad_id, np.int32)
        word_ids[mask] = self._ids_of(rows, lengths[: len(rows)])
        type_ids = mask.copy()
        type_ids[: len(rows)] &= places >= self.second_starts[rows][:, None]
        return {
            "input_word_ids": word_ids,
            "input_mask": mask.astype(np.int32),
            "input_type_ids": type_ids.astype(np.int32),
        }

    def _ids_of(self, rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the tokens of some rows, which have these lengths, one row after the other."""
        return self.ids[flat_ranges(self.offsets[rows], lengths)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupedRows(EncodedRows):
    """Rows of one or more sequences each; `ids`, `offsets` and `second_starts` are of sequences.

    Attributes:
        group_offsets: int64 [rows + 1]; row i has the sequences from `group_offsets[i]` to
            `group_offsets[i + 1] - 1`.
    """

    group_offsets: np.ndarray

    @classmethod
    def of(cls, sequences: EncodedRows, sizes: np.ndarray) -> Self:
        """Group consecutive sequences, `sizes` of them for each row, int64 [rows]."""
        assert sequences.lost_tokens is not None
        offsets = offsets_of(sizes)
        return cls(
            ids=sequences.ids,
            offsets=sequences.offsets,
            second_starts=sequences.second_starts,
            lost_tokens=np.add.reduceat(sequences.lost_tokens, offsets[:-1]),
            group_offsets=offsets,
        )

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
        return int(self.group_sizes.max())

    def padded(
        self, rows: np.ndarray, *, length: int, pad_id: int, batch_size: int | None = None
    ) -> dict[str, np.ndarray]:
        """Cut out a batch, see `EncodedRows.padded`.

        Returns:
            input_word_ids, input_mask and input_type_ids, int32 [batch_size, sequences, length],
            where `sequences` is the most of a row of this batch. Other rows are filled up with
            sequences of padding.
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


_BATCHES_PER_WINDOW = 50  # of HuggingFace's `get_length_grouped_indices`
_WINDOWS = 4  # at least; one window of few rows would have nearly the same batches in every epoch
# Padded lengths in prediction are multiples of this if nothing is compiled for each length.
# Kernels for a new length take 50 ms of processor time, and fewer tokens save more than that:
# compared with multiples of 8, texts of 46 tokens take a twentieth less time.
LENGTH_MULTIPLE = 2
# Padded lengths if XLA compiles a program for each; longer ones are multiples of the last.
COMPILED_LENGTHS = (32, 64, 96, 128, 192, 256, 384, 512)
COMPILED_TIMES = 16  # tokens and rows at once on accelerators, as a multiple of those on CPUs
# Rule for padded lengths: a number whose multiples they are, or several numbers of which the next
# one is taken; beyond these, padded lengths are multiples of the last.
Lengths = int | tuple[int, ...]


def epoch_batches(
    lengths: np.ndarray, *, batch_size: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Partition rows into batches of similar length, in an order that (seed, epoch) decides.

    Rows are shuffled, sorted by length within windows of 50 batches (fewer, so that there are four
    windows), and cut into batches, which are shuffled, like in HuggingFace's
    `get_length_grouped_indices`: there is little padding, and yet nearly any two rows may meet.

    Args:
        lengths: int [rows], tokens of each row.
        batch_size: rows of a batch; one batch may have fewer.
        seed: any integer.
        epoch: number from 0.

    Returns:
        int64 row numbers of each batch; every row is in one batch.
    """
    random = np.random.default_rng([unsigned_seed(seed, 64), epoch])
    order = random.permutation(len(lengths))
    batches_per_window = np.clip(len(order) // (_WINDOWS * batch_size), 1, _BATCHES_PER_WINDOW)
    window = np.arange(len(order)) // (batches_per_window * batch_size)
    order = order[np.lexsort((lengths[order], window))]
    batches = np.split(order, np.arange(batch_size, len(order), batch_size))
    return [batches[index] for index in random.permutation(len(batches))]


def budgeted_batches(
    sizes: np.ndarray, *, budget: int, multiple: Lengths = 1, max_rows: int | None = None
) -> list[np.ndarray]:
    """Partition rows into batches of similar padded size, the largest rows first.

    Args:
        sizes: int [rows], tokens of each row, or bytes if rows are not tokenized yet.
        budget: most of rows x padded size of a batch, unless a single row is larger.
        multiple: rule for padded sizes.
        max_rows: most rows of a batch; None sets no limit.

    Returns:
        int64 row numbers of each batch; [] without rows.
    """
    order = np.argsort(-sizes, kind="stable")
    batches = []
    begin = 0
    while begin < len(order):
        padded = max(1, padded_length(sizes[order[begin : begin + 1]], multiple))
        end = begin + min(max(1, budget // padded), max_rows or len(order))
        batches.append(order[begin:end])
        begin = end
    return batches


@dataclasses.dataclass(frozen=True, kw_only=True)
class Batching:
    """How rows are batched for a model with fixed weights: by length, within a budget of tokens.

    Attributes:
        pad_id: id of [PAD].
        batch_tokens: most tokens of a batch, padding included.
        max_seq_length: no row is padded to more, because the model may have no more positions.
        max_rows: most rows of a batch; None sets no limit.
        has_few_shapes: whether there are at most eight shapes, because XLA compiles the model once
            for each. Rows of padding fill up batches that have fewer tokens then.
    """

    pad_id: int
    batch_tokens: int
    max_seq_length: int
    max_rows: int | None = None
    has_few_shapes: bool = False

    @property
    def multiple(self) -> Lengths:
        """Lengths that rows are padded to: multiples of a number, or one of several."""
        return COMPILED_LENGTHS if self.has_few_shapes else LENGTH_MULTIPLE

    def batches(self, lengths: np.ndarray) -> list[np.ndarray]:
        """Partition rows by their lengths, see `budgeted_batches`."""
        return budgeted_batches(
            lengths, budget=self.batch_tokens, multiple=self.multiple, max_rows=self.max_rows
        )

    def padding(self, lengths: np.ndarray) -> dict[str, int]:
        """Return arguments of `EncodedRows.padded` for a batch, from the lengths of its rows."""
        rows = len(lengths)
        length = padded_length(lengths, self.multiple)
        if self.has_few_shapes:  # as many rows as `batches` puts into a full batch
            rows = max(1, self.batch_tokens // length)
            rows = min(rows, self.max_rows or rows)
        length = min(length, self.max_seq_length)
        return {"length": length, "pad_id": self.pad_id, "batch_size": rows}


def padded_tokens(lengths: np.ndarray, *, budget: int, multiple: int) -> int:
    """Return the tokens of all batches of `budgeted_batches`, padding included."""
    batches = budgeted_batches(lengths, budget=budget, multiple=multiple)
    return sum(len(chosen) * padded_length(lengths[chosen], multiple) for chosen in batches)


def padded_length(lengths: np.ndarray, multiple: Lengths, most: int | None = None) -> int:
    """Return the greatest length, rounded up to `multiple`, but no more than `most`."""
    longest = int(lengths.max())
    if isinstance(multiple, tuple):
        multiple = next((length for length in multiple if length >= longest), multiple[-1])
    rounded = -(-longest // multiple) * multiple
    return rounded if most is None else min(rounded, most)

"""Rows of tokens as flat arrays, their partition into batches, and padded batches."""

from __future__ import annotations

import dataclasses
from typing import Self

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of, unsigned_seed


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncodedRows:
    ids: np.ndarray  # int32 [tokens of all rows], specials included
    offsets: np.ndarray  # int64 [rows + 1]; row i is `ids[offsets[i]:offsets[i + 1]]`
    second_starts: np.ndarray  # int32 [rows], begin of the second segment, or length
    lost_tokens: np.ndarray | None = None  # int64 [rows], cut off; None if nothing is
    owners: np.ndarray | None = None  # int64 [rows], ascending; None if a row is a text

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sequences_per_row(self) -> int:
        return 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 [rows]."""
        return np.diff(self.offsets)

    def followed_by(self, other: EncodedRows) -> Self:
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
        """Select rows, int [n], each a text of its own."""
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
        """Cut out input_word_ids, input_mask and input_type_ids, int32 [batch_size, length].

        `rows` are int [n], none longer than `length`; rows of padding follow up to `batch_size`.
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupedRows(EncodedRows):
    """Rows of one or more sequences; `ids`, `offsets` and `second_starts` are of sequences."""

    group_offsets: np.ndarray  # int64 [rows + 1]; sequences of row i: `[i]` to `[i + 1] - 1`

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
        return np.diff(self.group_offsets)

    @property
    def sequences_per_row(self) -> int:
        return int(self.group_sizes.max())

    def padded(
        self, rows: np.ndarray, *, length: int, pad_id: int, batch_size: int | None = None
    ) -> dict[str, np.ndarray]:
        """Cut a batch out: int32 [batch_size, sequences, length], filled up with padding."""
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


_BATCHES_PER_WINDOW = 50
_WINDOWS = 4
# Padded lengths in prediction are multiples of this where nothing is compiled for each of them.
# Fewer tokens pay for the 50 ms of processor time that kernels for a new length take: against
# multiples of 8, a twentieth less on texts of 46 tokens.
LENGTH_MULTIPLE = 2
# Where XLA compiles a program for each; longer ones are multiples of the last.
COMPILED_LENGTHS = (32, 64, 96, 128, 192, 256, 384, 512)
COMPILED_TIMES = 16  # tokens and rows at once, as a multiple of those on a processor
Lengths = int | tuple[int, ...]  # multiples of a number, or of such


def epoch_batches(
    lengths: np.ndarray, *, batch_size: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Partition rows into int64 batches of similar length, in an order that (seed, epoch) decides.

    Rows are shuffled, sorted by length within windows of 50 batches (fewer, so that there are four
    windows), cut into batches and these shuffled, as in HuggingFace's `get_length_grouped_indices`:
    little padding, yet nearly any two rows may meet. One batch may have fewer rows than the others.
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
    """Partition all rows into int64 batches of similar padded size, the largest rows first.

    `sizes`, int [rows], are tokens, or bytes where they are not tokenized yet; a batch has at most
    `budget` = rows x padded size, a multiple of `multiple`, unless a single row is larger.
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
    """Batches for a model with fixed weights: of similar lengths, and so many tokens and rows.

    With `has_few_shapes` there are at most eight shapes, for a model that XLA compiles once for
    each: rows of padding fill up those batches that have fewer tokens.
    """

    pad_id: int
    batch_tokens: int  # padding included
    max_seq_length: int  # no row is padded to more: the model may have no more positions
    max_rows: int | None = None
    has_few_shapes: bool = False

    @property
    def multiple(self) -> Lengths:
        return COMPILED_LENGTHS if self.has_few_shapes else LENGTH_MULTIPLE

    def batches(self, lengths: np.ndarray) -> list[np.ndarray]:
        return budgeted_batches(
            lengths, budget=self.batch_tokens, multiple=self.multiple, max_rows=self.max_rows
        )

    def padding(self, lengths: np.ndarray) -> dict[str, int]:
        """Return arguments of `EncodedRows.padded` for a batch, by the lengths of its rows."""
        rows, length = len(lengths), padded_length(lengths, self.multiple)
        if self.has_few_shapes:  # as many as `batches` puts into a full one
            rows = max(1, self.batch_tokens // length)
            rows = min(rows, self.max_rows or rows)
        length = min(length, self.max_seq_length)
        return {"length": length, "pad_id": self.pad_id, "batch_size": rows}


def padded_tokens(lengths: np.ndarray, *, budget: int, multiple: int) -> int:
    """Count tokens of `budgeted_batches`, padding included."""
    batches = budgeted_batches(lengths, budget=budget, multiple=multiple)
    return sum(len(chosen) * padded_length(lengths[chosen], multiple) for chosen in batches)


def padded_length(lengths: np.ndarray, multiple: Lengths, most: int | None = None) -> int:
    longest = int(lengths.max())
    if isinstance(multiple, tuple):
        multiple = next((length for length in multiple if length >= longest), multiple[-1])
    rounded = -(-longest // multiple) * multiple
    return rounded if most is None else min(rounded, most)

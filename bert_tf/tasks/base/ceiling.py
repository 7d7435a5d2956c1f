"""Ceiling of metrics: even a perfect model is a function of the tokens that it reads.

The ceiling of labeled rows is the metric that a perfect model reaches on them. Such a model knows
every label, but rows that it reads alike (the same token ids, after truncation) get the same
outputs. These outputs pass the same steps as all predictions: they are reduced, decoded, stored
and measured. This module has the first half, which finds rows that are read alike and gives them a
common target; `bert_tf.tasks.running.ceiling` has the other half.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows, GroupedRows
from bert_tf.tasks.base.task_data import TaskData

# Logit of a right answer where others have 0: its probability is 1 in float32.
CERTAIN = 30.0

_PLURALS = {"is": "are", "has": "have"}  # of verbs; others lose their s
_BLOCK_ITEMS = 1 << 22  # integers hashed at once, to bound memory
_ORDER_FACTOR = np.uint64(31)  # an odd number, so that a sum of hashes depends on their order


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cause:
    """A reason why a perfect model is not right everywhere.

    Attributes:
        count: number of rows, answers or entities (`noun`) that it concerns, of `total`.
        text: the fault of one of them: "is longer than --max-answer-length 30".
        remedy: advice for the user.
        is_setting: whether an option is to blame, not the rows.
    """

    count: int
    total: int
    text: str
    remedy: str
    noun: str = "row"
    plural: str | None = None
    is_setting: bool = False

    @classmethod
    def of_rows(cls, rows: np.ndarray, text: str, remedy: str, *, is_setting: bool = False) -> Self:
        """Make a cause from the rows that it concerns, bool [rows]."""
        count = int(rows.sum())
        return cls(count=count, total=len(rows), text=text, remedy=remedy, is_setting=is_setting)

    @property
    def fraction(self) -> float:
        """The share of the total that it concerns, 0 to 1."""
        return self.count / max(self.total, 1)

    def __str__(self) -> str:
        verb, _, rest = self.text.partition(" ")
        nouns = self.plural or f"{self.noun}s"
        if self.count != 1:
            verb = _PLURALS.get(verb, verb.removesuffix("s"))
        return f"{self.count:,} of {self.total:,} {nouns} {verb} {rest}"


def row_offsets(data: TaskData) -> np.ndarray:
    """Return where the model's rows of each row of the file begin.

    Args:
        data: a row of the file has one row in the model, or several windows (`owners`).

    Returns:
        int64 [rows of the file + 1]; the last one is the number of the model's rows.
    """
    if data.owners is None:
        return np.arange(len(data.rows) + 1)
    return offsets_of(np.bincount(data.owners, minlength=len(data.source)))


def token_bounds(data: TaskData) -> np.ndarray:
    """Return where the tokens of each row of the file begin in `rows.ids`.

    Args:
        data: a row of the file has one sequence, several windows, or a group of sequences.

    Returns:
        int64 [rows of the file + 1]; the last one is the number of tokens.
    """
    rows = data.rows
    if isinstance(rows, GroupedRows):
        return rows.offsets[rows.group_offsets]
    return rows.offsets[row_offsets(data)]


def lost_tokens(data: TaskData) -> np.ndarray:
    """Count the tokens that are cut off each row of the file, int64 [rows]."""
    offsets = row_offsets(data)
    if data.rows.lost_tokens is None:
        return np.zeros(len(offsets) - 1, np.int64)
    return np.diff(np.concatenate([[0], np.cumsum(data.rows.lost_tokens)])[offsets])


def sequence_keys(rows: EncodedRows) -> np.ndarray:
    """Return a hash of each sequence's ids and segments, uint64 [sequences], equal everywhere."""
    lengths = np.diff(rows.offsets)
    shape = np.stack([lengths, rows.second_starts], axis=1).ravel()
    return hash_ranges(rows.ids, rows.offsets) + hash_ranges(shape, 2 * np.arange(len(lengths) + 1))


def row_keys(data: TaskData) -> np.ndarray:
    """Return a hash of the model's input for each row of the file, uint64 [rows].

    The order of windows matters. That of the sequences of a `GroupedRows` row does not, since their
    scores or vectors do not depend on it.
    """
    rows = data.rows
    keys = sequence_keys(rows)
    if isinstance(rows, GroupedRows):
        owners = np.repeat(np.arange(len(rows)), rows.group_sizes)
        return hash_ranges(keys[np.lexsort((keys, owners))], rows.group_offsets)
    return keys if data.owners is None else hash_ranges(keys, row_offsets(data))


def hash_ranges(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each range of integers, uint64 [ranges].

    A multilinear hash (Lemire & Kaser 2014, "Strongly Universal String Hashing is Fast"): the sum
    of values times a random odd number for each place, modulo 2^64. Two ranges have the same hash
    by chance once in some 2^60 pairs. Sums of ranges are differences of one running sum, whose
    overflow does no harm modulo 2^64.

    Args:
        values: integers of any width.
        offsets: int64 [ranges + 1], where each range begins; the last one ends the last range.
    """
    hashes = np.zeros(len(offsets) - 1, np.uint64)
    begin = 0
    while begin < len(hashes):
        most = offsets[begin] + _BLOCK_ITEMS
        end = max(begin + 1, int(np.searchsorted(offsets, most, side="right")) - 1)
        bounds = offsets[begin : end + 1]
        # Zeros must count, or ranges that end with different numbers of them would be equal.
        block = values[bounds[0] : bounds[-1]].astype(np.uint64) + np.uint64(1)
        places = flat_ranges(np.zeros(end - begin, np.int64), np.diff(bounds))
        block *= _random_odd(places)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(block, dtype=np.uint64)])
        hashes[begin:end] = sums[bounds[1:] - bounds[0]] - sums[bounds[:-1] - bounds[0]]
        begin = end
    return hashes


def _random_odd(places: np.ndarray) -> np.ndarray:
    """Return a random odd number for each place, uint64 (SplitMix64, Steele et al. 2014)."""
    mixed = (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)


def with_common_targets(data: TaskData, keys: np.ndarray) -> TaskData:
    """Return data in which rows with the same key have the same targets, the best for all of them.

    - Numbers (floating point) become the mean of these rows.
    - Booleans become the value of the majority, elementwise; True for a tie.
    - All other targets, those of tokens included, are copied together from one row: the first of
      those with the most frequent targets. So a start and an end, or the tags of a sentence, always
      belong together.

    Args:
        data: rows of the same key must have targets of the same shapes.
        keys: int [rows], keys of the rows of the file.
    """
    # Rows with one key are a group; each row of a file without repetitions is one of its own.
    _, groups = np.unique(keys, return_inverse=True)
    if int(groups.max(initial=-1)) + 1 == len(keys):
        return data
    offsets = row_offsets(data)
    bounds = token_bounds(data)
    model_rows = np.diff(offsets)
    # A row's integers of all targets count as one vote, so that they are only taken together.
    votes = np.zeros(len(keys), np.uint64)
    for values in data.targets.values():
        if values.dtype.kind in "iu":
            width = values[:1].size
            votes = votes * _ORDER_FACTOR + hash_ranges(values.ravel(), offsets * width)
    for values in data.token_targets.values():
        if values.dtype.kind in "iu":
            votes = votes * _ORDER_FACTOR + hash_ranges(values, bounds)
    winners = _winners(groups, votes)
    rows = flat_ranges(offsets[winners], model_rows)
    tokens = flat_ranges(bounds[winners], np.diff(bounds))
    repeated = np.flatnonzero(np.bincount(groups)[groups] > 1)
    targets = {}
    for name, values in data.targets.items():
        if values.dtype.kind in "iu":
            targets[name] = values[rows]
            continue
        means = _means(values[offsets[repeated]].astype(np.float64), groups[repeated])
        common = means >= 0.5 if values.dtype == bool else means
        changed = flat_ranges(offsets[repeated], model_rows[repeated])
        targets[name] = values.copy()
        targets[name][changed] = np.repeat(common, model_rows[repeated], axis=0)
    return dataclasses.replace(
        data,
        targets=targets,
        token_targets={name: values[tokens] for name, values in data.token_targets.items()},
    )


def _winners(groups: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Return the first row with the most frequent vote of each row's group.

    Args:
        groups: int64 [rows], numbered from 0.
        votes: uint64 [rows], a hash of all that a row says; equal ones agree.

    Returns:
        int64 [rows], the number of a row in the same group.
    """
    _, numbers = np.unique(votes, return_inverse=True)
    # A number for each pair of a group and a vote.
    ballots = groups * (int(numbers.max()) + 1) + numbers
    _, first, counts = np.unique(ballots, return_index=True, return_counts=True)
    of_group = groups[first]
    # Within a group the most frequent vote comes first, and of equals the one that occurs first.
    order = np.lexsort((first, -counts, of_group))
    _, best = np.unique(of_group[order], return_index=True)
    return first[order[best]][groups]


def _means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the mean of each row's group, from and to float64 [rows, …]."""
    _, places, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), *values.shape[1:]))
    np.add.at(sums, places, values)
    means: np.ndarray = sums / counts.reshape(-1, *[1] * (values.ndim - 1))
    return means[places]


# Relative and absolute tolerance: means of equal float32 numbers differ by less.
_SAME_NUMBER = 1e-6


def changed_rows(data: TaskData, other: TaskData) -> np.ndarray:
    """Find the rows of the file that have other targets in `other`.

    Args:
        data: labeled rows.
        other: the same rows, as `with_common_targets` returns them.

    Returns:
        bool [rows of the file]. Numbers that differ by rounding are equal.
    """
    offsets = row_offsets(data)
    bounds = token_bounds(data)
    changed = np.zeros(len(offsets) - 1, bool)
    for values, others, ranges in (
        *_pairs(data.targets, other.targets, offsets),
        *_pairs(data.token_targets, other.token_targets, bounds),
    ):
        if values.dtype.kind == "f":
            differs = ~np.isclose(values, others, rtol=_SAME_NUMBER, atol=_SAME_NUMBER)
        else:
            differs = values != others
        differs = differs.reshape(len(values), -1).any(axis=1)
        changed |= np.diff(offsets_of(differs)[ranges]) > 0
    return changed


def _pairs(
    one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], ranges: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the targets of one name in both, and where each row of the file begins in them."""
    for name, values in one.items():
        yield values, other[name], ranges

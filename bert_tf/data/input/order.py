"""The order of records in an epoch: permutations that follow from the seed and numbers alone."""

from __future__ import annotations

import numpy as np

from bert_tf.data.examples.random_numbers import combine_keys, seed_key


def block_order(seed: int, epoch: int, blocks: int) -> np.ndarray:
    """The order of the blocks in an epoch: a permutation of 0 … blocks - 1, int64."""
    return _permutation(blocks, seed_key(seed, "blocks"), epoch)


def row_order(seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
    """The order of the rows of a block in an epoch: a permutation of 0 … rows - 1, int64."""
    return _permutation(rows, seed_key(seed, "rows"), epoch, block)


def packed_row_order(seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
    """Where each packed row of a block comes in an epoch: a permutation of 0 … rows - 1, int64."""
    return _permutation(rows, seed_key(seed, "packed rows"), epoch, block)


def _permutation(count: int, key: np.uint64, *names: int) -> np.ndarray:
    keys = np.full(count, key, np.uint64)
    for name in names:
        keys = combine_keys(keys, np.uint64(name))
    return np.argsort(combine_keys(keys, np.arange(count, dtype=np.uint64)), kind="stable")

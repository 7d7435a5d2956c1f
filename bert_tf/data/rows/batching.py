"""Which rows make a batch: buckets of similar length in training, a budget in prediction."""

from __future__ import annotations

import numpy as np

from bert_tf.base.arrays import unsigned_seed

_BATCHES_PER_WINDOW = 50
_WINDOWS = 4
# Padded lengths in prediction are multiples of this where nothing is compiled for each of them.
# Fewer tokens pay for the 50 ms of processor time that kernels for a new length take: against
# multiples of 8, a twentieth less on texts of 46 tokens.
LENGTH_MULTIPLE = 2


def epoch_batches(
    lengths: np.ndarray, *, batch_size: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Partitions all rows into batches of similar length, in an order that (seed, epoch) decides.

    Rows are shuffled, sorted by length within windows of 50 batches, or of fewer so that there are
    four windows, as in HuggingFace's `get_length_grouped_indices`; they are cut into batches, and
    the batches are shuffled. That takes little padding, and yet nearly any two rows may meet: one
    window of few rows would have nearly the same batches in every epoch.

    Args:
        lengths: int [rows], tokens of each row.
        batch_size: rows of a batch; one batch may have fewer.
        seed: any whole number.
        epoch: counted from 0.

    Returns:
        int64 row numbers of each batch; every row is in one of them.
    """
    random = np.random.default_rng([unsigned_seed(seed, 64), epoch])
    order = random.permutation(len(lengths))
    batches_per_window = np.clip(len(order) // (_WINDOWS * batch_size), 1, _BATCHES_PER_WINDOW)
    window = np.arange(len(order)) // (batches_per_window * batch_size)
    order = order[np.lexsort((lengths[order], window))]
    batches = np.split(order, np.arange(batch_size, len(order), batch_size))
    return [batches[index] for index in random.permutation(len(batches))]


def budgeted_batches(
    sizes: np.ndarray, *, budget: int, multiple: int = 1, max_rows: int | None = None
) -> list[np.ndarray]:
    """Partitions all rows into batches of similar size whose padded total keeps to a budget.

    Args:
        sizes: int [rows], of each row: tokens, or bytes where they are not tokenized yet.
        budget: rows x padded size of a batch, unless a single row is larger.
        multiple: what padded sizes are multiples of.
        max_rows: rows of the biggest batch.

    Returns:
        int64 row numbers of each batch, the largest rows first; no batch if there are no rows.
    """
    order = np.argsort(-sizes, kind="stable")
    batches = []
    begin = 0
    while begin < len(order):
        padded = max(1, padded_length(sizes[order[begin : begin + 1]], multiple))
        count = max(1, budget // padded)
        if max_rows is not None:
            count = min(count, max_rows)
        batches.append(order[begin : begin + count])
        begin += count
    return batches


def padded_tokens(lengths: np.ndarray, *, budget: int, multiple: int) -> int:
    """The tokens of the batches that `budgeted_batches` makes of rows, padding included."""
    batches = budgeted_batches(lengths, budget=budget, multiple=multiple)
    return sum(len(chosen) * padded_length(lengths[chosen], multiple) for chosen in batches)


def padded_length(lengths: np.ndarray, multiple: int, most: int | None = None) -> int:
    """The greatest length rounded up to a multiple, but not beyond `most`."""
    rounded = -(-int(lengths.max()) // multiple) * multiple
    return rounded if most is None else min(rounded, most)

"""Batches hold every row once, of similar lengths, in an order that seed and epoch decide."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.rows.encoded_rows import (
    Batching,
    budgeted_batches,
    epoch_batches,
    padded_length,
)

LENGTHS = np.random.default_rng(5).integers(3, 129, size=5003)


@given(
    rows=st.integers(1, 300),
    batch_size=st.integers(1, 40),
    seed=st.integers(),
    epoch=st.integers(0),
)
def test_every_row_is_in_one_batch(rows, batch_size, seed, epoch):
    lengths = LENGTHS[:rows]
    batches = epoch_batches(lengths, batch_size=batch_size, seed=seed, epoch=epoch)
    assert len(batches) == -(-rows // batch_size)
    assert sorted(np.concatenate(batches).tolist()) == list(range(rows))
    assert sorted(map(len, batches))[1:] == [batch_size] * (len(batches) - 1)


def test_order_is_a_function_of_seed_and_epoch():
    def order(seed, epoch):
        batches = epoch_batches(LENGTHS, batch_size=32, seed=seed, epoch=epoch)
        return np.concatenate(batches).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2, -1) for epoch in (0, 1)}) == 6


def test_batches_need_little_padding():
    batches = epoch_batches(LENGTHS, batch_size=32, seed=1, epoch=0)
    padded = sum(len(rows) * padded_length(LENGTHS[rows], 16) for rows in batches)
    assert padded < 1.2 * LENGTHS.sum()


def test_few_rows_meet_others_in_each_epoch():
    together = []
    for epoch in (0, 1):
        batches = epoch_batches(LENGTHS[:1000], batch_size=32, seed=1, epoch=epoch)
        together.append({frozenset(pair) for rows in batches for pair in combinations(rows, 2)})
    assert len(together[0] & together[1]) < 0.25 * len(together[0])


@given(rows=st.integers(1, 300), budget=st.integers(1, 3000), max_rows=st.integers(1, 50))
def test_budgeted_batches_keep_their_budget(rows, budget, max_rows):
    lengths = LENGTHS[:rows]
    batches = budgeted_batches(lengths, budget=budget, multiple=8, max_rows=max_rows)
    assert sorted(np.concatenate(batches).tolist()) == list(range(rows))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * padded_length(lengths[batch], 8) <= budget
        assert len(batch) <= max_rows
    for batch in batches[:-1]:  # another row would have been too many
        more = (len(batch) + 1) * padded_length(lengths[batch], 8)
        assert len(batch) == max_rows or more > budget


def test_budgeted_batches_of_nothing_and_of_empty_rows():
    assert budgeted_batches(np.zeros(0, np.int64), budget=10) == []
    batches = budgeted_batches(np.zeros(5, np.int64), budget=3)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4]]


def test_padded_length_stops_at_the_model():
    assert padded_length(np.array([3, 17]), 16) == 32
    assert padded_length(np.array([120]), 16, most=125) == 125


@given(st.lists(st.integers(1, 33), min_size=1, max_size=60), st.booleans())
def test_a_batch_fits_the_model_and_few_shapes_are_compiled(numbers, has_few_shapes):
    lengths = np.array(numbers)
    batching = Batching(
        pad_id=0, batch_tokens=200, max_rows=5, max_seq_length=33, has_few_shapes=has_few_shapes
    )
    shapes = set()
    for chosen in batching.batches(lengths):
        padding = batching.padding(lengths[chosen])
        assert lengths[chosen].max() <= padding["length"] <= 33
        assert len(chosen) <= padding["batch_size"] <= 5
        shapes.add((padding["batch_size"], padding["length"]))
    if has_few_shapes:
        assert shapes <= {(5, 32), (3, 33)}

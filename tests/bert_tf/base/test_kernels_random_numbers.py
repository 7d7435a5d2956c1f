"""Keyed random numbers: known values of splitmix64, independence of keys, ranges."""

import numba
import numpy as np
import pytest

from bert_tf.base.kernels import (
    combine_keys,
    next_below,
    next_bits,
    next_unit,
    seed_key,
)


@numba.njit
def draw(key, count):
    state = np.full(1, key, np.uint64)
    bits = np.empty(count, np.uint64)
    units = np.empty(count)
    below = np.empty(count, np.int64)
    for i in range(count):
        bits[i] = next_bits(state)
    for i in range(count):
        units[i] = next_unit(state)
    for i in range(count):
        below[i] = next_below(state, 7)
    return bits, units, below


def test_the_stream_of_key_0_is_the_published_one():
    bits, _, _ = draw(np.uint64(0), 3)
    assert [hex(value) for value in bits] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


def test_numbers_fill_their_ranges_evenly():
    _, units, below = draw(np.uint64(5), 70_000)
    assert units.min() >= 0.0 and units.max() < 1.0
    assert abs(units.mean() - 0.5) < 0.005
    assert np.bincount(below, minlength=8).tolist()[7] == 0
    assert abs(np.bincount(below) / 10_000 - 1).max() < 0.05


def test_keys_differ_by_seed_purpose_value_and_order():
    keys = [
        int(key)
        for seed in (0, 1, -1, 2**63)
        for purpose in ("masks", "eval", "a longer purpose")
        for first in (0, 1)
        for second in (0, 1)
        for key in combine_keys(
            combine_keys(np.array([seed_key(seed, purpose)]), np.uint64(first)), np.uint64(second)
        )
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("values", [np.uint64(3), np.array([3, 3], np.uint64)])
def test_one_number_for_all_keys_or_one_for_each(values):
    keys = np.array([1, 2], np.uint64)
    combined = combine_keys(keys, values)
    assert combined.dtype == np.uint64
    assert combined.tolist() == [
        int(combine_keys(keys[i : i + 1], np.uint64(3))[0]) for i in (0, 1)
    ]

"""Hashes of ranges, by which rows are told to be equal."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.base.ceiling import hash_ranges


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=8))
def test_ranges_have_one_hash_if_they_are_equal(ranges):
    offsets = np.cumsum([0, *map(len, ranges)])
    values = np.array([value for each in ranges for value in each], np.int32)
    hashes = hash_ranges(values, offsets).tolist()
    assert len(set(zip(map(tuple, ranges), hashes, strict=True))) == len(set(map(tuple, ranges)))
    # A 0 at the end is a value, too.
    assert len(set(hashes)) == len(set(map(tuple, ranges)))


def test_hashes_do_not_depend_on_how_ranges_are_cut_into_blocks(monkeypatch):
    values = np.random.default_rng(0).integers(0, 9, 100)
    offsets = np.array([0, 3, 3, 40, 41, 99, 100])
    whole = hash_ranges(values, offsets)
    monkeypatch.setattr("bert_tf.tasks.base.ceiling._BLOCK_ITEMS", 1)
    np.testing.assert_array_equal(hash_ranges(values, offsets), whole)

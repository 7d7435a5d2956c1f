"""Ranges of flat arrays against plain lists."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import flat_ranges, group_means, offsets_of


@pytest.mark.parametrize("dtype", [np.bool_, np.uint32, np.int32, np.int64])
@given(lengths=st.lists(st.integers(0, 6)))
def test_offsets_are_the_running_sums(dtype, lengths):
    offsets = offsets_of(np.array(lengths, dtype))
    assert offsets.dtype == np.int64
    assert offsets.tolist() == list(
        itertools.accumulate(np.array(lengths, dtype).tolist(), initial=0)
    )


@given(ranges=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 5)), max_size=6))
def test_flat_ranges_are_pythons_one_after_the_other(ranges):
    starts, lengths = np.array(ranges, np.int64).reshape(-1, 2).T
    numbers = flat_ranges(starts, lengths)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [
        number for start, length in ranges for number in range(start, start + length)
    ]


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
@given(counts=st.lists(st.integers(1, 4), max_size=6))
def test_group_means_are_those_of_each_owner(shape, counts):
    owners = np.repeat(10 + 3 * np.arange(len(counts)), counts)
    values = np.random.default_rng(1).normal(size=(len(owners), *shape)).astype(np.float32)
    firsts, means = group_means({"values": values}, owners)
    assert firsts.tolist() == list(itertools.accumulate(counts, initial=0))[:-1]
    assert means["values"].dtype == np.float32
    expected = [values[owners == owner].mean(axis=0) for owner in np.unique(owners)]
    np.testing.assert_allclose(
        means["values"], np.reshape(expected, (len(counts), *shape)), atol=1e-6
    )

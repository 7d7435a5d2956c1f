"""Any whole number is a seed, and one that fits is left alone."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bert_tf.base.arrays import flat_ranges, group_means, int32_seed, offsets_of, unsigned_seed
from bert_tf.base.kernels import seed_key
from bert_tf.data.rows.encoded_rows import epoch_batches


@settings(deadline=None)  # the first call compiles
@given(st.integers())
@example(-1)
@example(2**31)
@example(2**64 + 1)
def test_any_whole_number_suits_every_generator(seed):
    assert 0 <= unsigned_seed(seed, 32) < 2**32
    # NumPy casts by two's complement too.
    assert int32_seed(seed) == np.array(unsigned_seed(seed, 64), np.uint64).astype(np.int32)
    seed_key(seed, "rows")
    epoch_batches(np.ones(3, int), batch_size=2, seed=seed, epoch=0)


@given(st.integers(0, 2**31 - 1))
def test_a_seed_that_fits_is_left_alone(seed):
    assert unsigned_seed(seed, 32) == unsigned_seed(seed, 64) == int32_seed(seed) == seed


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

"""Ranges of flat arrays against plain lists."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import flat_ranges, offsets_of


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

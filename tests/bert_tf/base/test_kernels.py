"""Compiled helpers against plain Python and against published values."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.kernels import (
    FNV_OFFSET_BASIS,
    count_characters,
    fnv1a,
    fnv1a_step,
    mix64,
    take_ranges,
)

numbers_of_64_bits = st.integers(0, 2**64 - 1)


@numba.njit
def hash_continued(units, start, stop):
    value = FNV_OFFSET_BASIS
    for place in range(start, stop):
        value = fnv1a_step(value, units[place])
    return value


def fnv1a_in_python(units: list[int]) -> int:
    value = 0xCBF29CE484222325
    for unit in units:
        value = (value ^ unit) * 0x100000001B3 % 2**64
    return value


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
@given(data=st.data())
def test_taking_ranges_joins_slices(dtype, data):
    values = np.array(data.draw(st.lists(st.integers(0, 255), max_size=12)), dtype)
    places = st.integers(0, len(values))
    ranges = data.draw(st.lists(st.tuples(places, places).map(sorted), max_size=5))
    starts, stops = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    taken = take_ranges(values, starts, stops - starts)
    assert taken.dtype == values.dtype
    assert taken.tolist() == [
        value for start, stop in ranges for value in values[start:stop].tolist()
    ]


@given(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9))
def test_characters_are_counted_as_python_does(before, text, after):
    start, length = len(before.encode()), len(text.encode())
    data = np.frombuffer((before + text + after).encode(), np.uint8)
    assert count_characters(data, start, start + length) == len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    # From the test vectors of the FNV specification.
    [
        (b"", 0xCBF29CE484222325),
        (b"a", 0xAF63DC4C8601EC8C),
        (b"foobar", 0x85944171F73967E8),
    ],
)
def test_fnv1a_of_the_specification(text, expected):
    assert int(fnv1a(np.frombuffer(text, np.uint8), 0, len(text))) == expected


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
@given(data=st.data())
def test_fnv1a_of_any_range_is_pythons(dtype, data):
    units = np.array(data.draw(st.lists(st.integers(0, np.iinfo(dtype).max), max_size=9)), dtype)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(units))] * 2)))
    expected = fnv1a_in_python(units[start:stop].tolist())
    assert int(fnv1a(units, start, stop)) == expected
    assert int(hash_continued(units, start, stop)) == expected


@given(value=numbers_of_64_bits)
def test_mix64_is_splitmix64s_finalizer_in_python(value):
    mixed = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    assert int(mix64(np.uint64(value))) == mixed ^ mixed >> 31


def test_mix64_of_the_published_stream():
    # The first number of splitmix64 from the state 0.
    assert hex(int(mix64(np.uint64(0x9E3779B97F4A7C15)))) == "0xe220a8397b1dcdaf"

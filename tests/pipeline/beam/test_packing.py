"""Values of spill files as bytes."""

import collections
import dataclasses
import io
import json
import os
import pickle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError
from pipeline.beam.packing import pack, unpack


class Sample(NamedTuple):
    hash: int
    text: str


@dataclasses.dataclass(frozen=True)
class Block:
    rows: np.ndarray
    samples: dict[str, list[Sample]]


def packed(value):
    return b"".join(pack(value))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TEXTS = st.text(st.characters(codec=None))  # also unpaired surrogates
VALUES = st.recursive(
    SCALARS | TEXTS | st.binary() | st.builds(Sample, st.integers(), TEXTS),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXTS | st.tuples(TEXTS, st.integers()), inner)
        | st.dictionaries(TEXTS, st.integers()).map(collections.Counter)
    ),
)


@given(VALUES)
def test_plain_values_come_back_with_their_types(value):
    def typed(value):
        if isinstance(value, dict):
            return type(value), [(typed(key), typed(each)) for key, each in value.items()]
        if isinstance(value, list | tuple):
            return type(value), list(map(typed, value))
        return type(value), value

    assert typed(unpack(packed(value), Sample)) == typed(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.int64).reshape(3, 4)[:, ::2],
        np.array([], np.float32),
        np.array([(1, [2.0, 3.0])], np.dtype([("key", "u8"), ("both", "f4", 2)])),
    ],
)
def test_arrays_come_back_and_can_be_written_to(array):
    found = unpack(packed([array, array])).pop()
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    found[...] = array


@given(st.lists(st.text()), st.data())
def test_texts_come_back_from_any_slice(texts, data):
    begin = data.draw(st.integers(0, len(texts)))
    array = pa.array(texts, pa.string())[begin:]
    assert unpack(packed(array)).to_pylist() == texts[begin:]


def test_a_slice_takes_only_its_own_bytes():
    assert len(packed(pa.array(["x" * 100_000, "y"])[1:])) < 1000


def test_only_classes_that_the_reader_names_are_made():
    block = Block(np.arange(3), {"rule": [Sample(1, "a")]})
    found = unpack(packed(block), Block, Sample)
    assert isinstance(found, Block) and found.samples == block.samples
    with pytest.raises(InputError, match="start again with --overwrite"):
        unpack(packed(block), Block)


class _Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_no_pickle_is_read(tmp_path):
    trap = _Hostile(tmp_path / "made")
    objects = io.BytesIO()
    np.save(objects, np.array([trap]), allow_pickle=True)
    described = json.dumps({"array": ["|O", [1]]}).encode()
    of_objects = len(described).to_bytes(8) + described + objects.getvalue()
    for data in (pickle.dumps(trap), of_objects):
        with pytest.raises(InputError, match="not of this version"):
            unpack(data)
    assert not (tmp_path / "made").exists()
    with pytest.raises(FileExistsError):  # the trap works
        Path(tmp_path / "made").mkdir()
        pickle.loads(pickle.dumps(trap))


@given(st.binary(), st.integers(0, 200), st.data())
def test_damage_is_an_error_of_one_line(noise, place, data):
    whole = packed([np.arange(5), "a", {"b": b"c"}, pa.array(["d"])])
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    replaced = whole[:place] + noise + whole[place + len(noise) :]
    for damaged in (noise, cut, replaced):
        try:
            unpack(damaged)
        except InputError as error:
            assert "\n" not in str(error)

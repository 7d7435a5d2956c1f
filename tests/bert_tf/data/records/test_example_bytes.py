"""Counts of a feature's values against protobuf."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.records.example_bytes import count_values


def framed(records: list[bytes]) -> np.ndarray:
    frames = [len(record).to_bytes(8, "little") + b"...." + record + b"...." for record in records]
    return np.frombuffer(b"".join(frames), np.uint8)


def example_of(**features) -> bytes:
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        if values and isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif values and isinstance(values[0], float):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(values)
    return example.SerializeToString()


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([0, 1, 127, 128, 128 << 7, 2**40, -1]), max_size=200),
            st.lists(st.sampled_from([0.0, 1.0, 0.5]), min_size=1, max_size=40),
        ),
        min_size=1,
        max_size=4,
    )
)
@fewer_examples(0.83)
def test_values_of_any_example_are_counted(rows):
    content = framed(
        [example_of(other=[b"x" * 300], ids=ids, weights=weights) for ids, weights in rows]
    )
    for name, column in (("ids", 0), ("weights", 1)):
        lists = [row[column] for row in rows]
        expected = [[len(values), np.count_nonzero(values)] for values in lists]
        assert count_values(content, len(rows), name).tolist() == expected


def test_unpacked_lists_are_counted():
    varints = b"\x1a\x06" + b"\x08\x05\x08\x00\x08\x01"  # Feature.int64_list, unpacked
    entry = b"\x0a\x01a" + b"\x12" + bytes([len(varints)]) + varints
    features = b"\x0a" + bytes([len(entry)]) + entry
    record = b"\x0a" + bytes([len(features)]) + features
    assert tf.train.Example.FromString(record).features.feature["a"].int64_list.value[:] == [
        *(5, 0, 1)
    ]
    assert count_values(framed([record]), 1, "a").tolist() == [[3, 2]]


def test_a_feature_that_is_not_there_is_reported():
    content = framed([example_of(other=[1]), b"", example_of(ids=[b"text"])])
    assert count_values(content, 3, "ids").tolist() == [[-1, -1]] * 3


@given(st.integers(0, 2**31))
def test_damaged_records_are_never_read_beyond(seed):
    random = np.random.default_rng(seed)
    record = bytearray(example_of(ids=list(range(50)), weights=[1.0] * 20))
    for place in random.integers(0, len(record), 3):
        record[place] = random.integers(0, 256)
    cut = bytes(record[: random.integers(0, len(record) + 1)])
    values, others = count_values(framed([cut]), 1, "ids")[0]
    assert -1 <= others <= values <= len(record)


@pytest.mark.parametrize("name", ["i", "idss", ""])
def test_names_must_be_equal(name):
    assert count_values(framed([example_of(ids=[1])]), 1, name).tolist() == [[-1, -1]]

"""Rows of several sequences: every sequence is in its place, padding is everywhere else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.data.rows.encoded_rows import GroupedRows

GROUPS = st.lists(
    st.lists(st.integers(1, 7), min_size=1, max_size=4),  # tokens of each sequence of a row
    min_size=1,
    max_size=5,
)


def grouped(groups):
    lengths = np.array([length for group in groups for length in group])
    return GroupedRows(
        ids=np.arange(10, 10 + lengths.sum(), dtype=np.int32),
        offsets=offsets_of(lengths),
        second_starts=(lengths // 2).astype(np.int32),
        group_offsets=offsets_of(np.array([len(group) for group in groups])),
    )


@given(GROUPS, st.data())
def test_a_batch_holds_the_sequences_of_its_rows(groups, data):
    rows = grouped(groups)
    chosen = data.draw(st.lists(st.integers(0, len(groups) - 1), min_size=1, max_size=4))
    more = data.draw(st.integers(0, 2))
    batch = rows.padded(np.array(chosen), length=8, pad_id=3, batch_size=len(chosen) + more)

    width = max(len(groups[row]) for row in chosen)
    shape = (len(chosen) + more, width, 8)
    expected = {
        "input_word_ids": np.full(shape, 3),
        "input_mask": np.zeros(shape),
        "input_type_ids": np.zeros(shape),
    }
    starts = [0]
    for group in groups:
        starts.append(starts[-1] + sum(group))
    for place, row in enumerate(chosen):
        first = 10 + starts[row]
        for sequence, length in enumerate(groups[row]):
            expected["input_word_ids"][place, sequence, :length] = range(first, first + length)
            expected["input_mask"][place, sequence, :length] = 1
            expected["input_type_ids"][place, sequence, length // 2 : length] = 1
            first += length
    assert batch.keys() == expected.keys()
    for name, values in batch.items():
        assert values.dtype == np.int32
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_a_row_is_as_long_as_its_longest_sequence():
    rows = grouped([[3, 5], [2], [1, 1, 7]])
    assert len(rows) == 3
    assert rows.lengths.tolist() == [5, 2, 7]
    assert (len(rows.second_starts), rows.sequences_per_row) == (6, 3)

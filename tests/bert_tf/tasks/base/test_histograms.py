import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.base.histograms import doubling_histogram, histogram


@given(st.lists(st.integers(-50, 1000), min_size=1, max_size=200))
def test_a_histogram_counts_every_whole_number_in_the_range_that_names_it(values):
    section = histogram("T", "x", "rows", np.array(values))
    assert len(section.names) == len(section.counts) <= 26
    for name, count in zip(section.names, section.counts.tolist(), strict=True):
        low, _, high = name.replace(",", "").partition(" to ")
        assert count == sum(int(low) <= value <= int(high or low) for value in values)


def test_a_histogram_of_shares_has_its_bounds_and_counts_its_parts():
    values = np.array([0.0, 0.15, 0.149, 1.0])
    section = histogram(
        "T", "x", "rows", values, bounds=(0.0, 1.0), is_part=values == 1.0, part_noun="wrong"
    )
    assert section.ticks[0] == "0" and section.ticks[-1] == "1"
    assert dict(zip(section.names, section.counts.tolist(), strict=True))["0.15 to 0.2"] == 1
    assert section.counts[-1] == section.parts.sum() == section.parts[-1] == 1


def test_ranges_that_double_end_in_one_without_a_bound():
    section = doubling_histogram("T", "x", "rows", np.array([0, 1, 2, 3, 9, 1000]), most=4)
    assert section.names == ["1", "2 to 3", "4 to 7", "8 and more"]
    assert section.counts.tolist() == [2, 2, 0, 2]

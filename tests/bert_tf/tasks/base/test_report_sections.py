import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.report_sections import (
    length_bins,
    spread_points,
    table_by_group,
    worst_first,
    worst_rows,
)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200))
def test_rows_of_one_length_are_in_one_group_and_groups_follow_one_another(values):
    lengths = np.array(values)
    groups, names = length_bins(lengths)
    assert 1 <= len(names) <= 5 and set(groups.tolist()) == set(range(len(names)))
    order = np.argsort(lengths, kind="stable")
    assert (np.diff(groups[order]) >= 0).all()
    assert all(len(set(groups[lengths == value].tolist())) == 1 for value in set(values))


def test_groups_are_about_equal_and_named_by_their_lengths():
    groups, names = length_bins(np.arange(1, 101) * 20)
    assert np.bincount(groups).tolist() == [20] * 5
    assert names[0] == "20 to 400" and names[-1] == "1,620 to 2,000"


def test_a_table_has_the_mean_of_each_group_that_has_rows():
    table = table_by_group(
        "T",
        "kind",
        np.array([0, 2, 0]),
        ["a", "b", "c"],
        {"right": ("fraction", np.array([True, False, False]))},
    )
    assert table.rows == [["a", 2, 0.5], ["c", 1, 0.0]]
    assert table.columns == (("kind", "text"), ("rows", "count"), ("right", "fraction"))


def test_right_rows_with_high_losses_take_no_place_of_wrong_ones():
    number = 100
    section = worst_rows(
        losses=np.linspace(1, 0, number),
        is_wrong=np.arange(number) >= number - 3,
        places=[Place(line) for line in range(2, number + 2)],
        texts={},
        facts=lambda row: {},
        note="",
    )
    assert [example.line for example in section.examples] == [99, 100, 101]


def test_the_worst_rows_come_first_and_points_are_spread():
    assert worst_first(np.array([1.0, 3.0, 3.0, 2.0]), 3).tolist() == [1, 2, 3]
    drawn, tally = spread_points(3)
    assert (drawn.tolist(), tally) == ([0, 1, 2], "")
    drawn, tally = spread_points(10**6)
    assert tally == f"{len(drawn):,} of 1,000,000 rows. "
    assert len(drawn) == 1000 and drawn[0] == 0 and drawn[-1] == 10**6 - 1

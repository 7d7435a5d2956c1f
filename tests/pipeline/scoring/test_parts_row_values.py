"""Types of columns: what keeps its own and what becomes text."""

import pyarrow as pa
import pytest

from pipeline.scoring.parts import column_array, column_types, kinds_of


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([1, None, 3], pa.int64(), [1, None, 3]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([True, False], pa.bool_(), [True, False]),
        (["2020-01-01", "1"], pa.string(), ["2020-01-01", "1"]),
        ([None, None], pa.string(), [None, None]),
        ([1, "a", True], pa.string(), ["1", "a", "true"]),
        ([[1, "é"], {"b": None}], pa.string(), ['[1, "é"]', '{"b": null}']),
        ([1 << 63], pa.string(), ["9223372036854775808"]),
        ([-(1 << 63)], pa.int64(), [-(1 << 63)]),
        ([(1 << 53) + 1, 2], pa.int64(), [(1 << 53) + 1, 2]),
        ([(1 << 53) + 1, 0.5], pa.string(), ["9007199254740993", "0.5"]),
    ],
)
def test_a_column_has_the_type_of_all_its_values(values, type_, expected):
    rows = [{"c": value} for value in values]
    parts = [kinds_of([row]) for row in rows]
    assert column_types(parts) == column_types([kinds_of(rows)]) == {"c": type_}
    array = column_array(rows, "c", type_)
    assert (array.type, array.to_pylist()) == (type_, expected)


def test_columns_are_in_the_order_of_their_first_appearance_and_may_be_absent():
    rows = [{"b": 1}, {"a": "x", "b": 2}]
    types = column_types([kinds_of(rows[:1]), kinds_of(rows[1:])])
    assert list(types) == ["b", "a"]
    assert column_array(rows, "a", types["a"]).to_pylist() == [None, "x"]

"""What columns look like, and which one is meant."""

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.sketches import TableSketch, sketch_columns


def sketch(values):
    return sketch_columns(["c"], [{"c": value} for value in values])[0]


@pytest.mark.parametrize(
    ("values", "kind", "whole"),
    [
        (["1", "2.5"], "number", False),
        ([1, "2"], "number", True),
        (["1", "two"], "text", False),
        (["nan", "1"], "text", False),  # no number to predict
        ([["a"], ["b"]], "list", False),
        ([{"a": 1}, "b"], "object", False),
        ([None, ""], "empty", False),
    ],
)
def test_the_kind_of_cells(values, kind, whole):
    assert (sketch(values).kind, sketch(values).whole) == (kind, whole)


def test_labels_are_few_and_short():
    assert sketch(["good", "bad"] * 9).is_label
    assert sketch(["0", "1"] * 9).is_label
    assert not sketch(["0.5", "1"] * 9).is_label
    assert not sketch(["good"] * 9).is_label
    assert not sketch([f"text number {n}" for n in range(9)]).is_label
    assert not sketch(["a label of more words than labels have in files"] * 5 + ["x"] * 2).is_label


def test_quantities_do_not_count_rows():
    assert sketch(["0.5", "1.5", "2"]).is_quantity
    assert sketch([1, 2, 2, 3]).is_quantity
    assert not sketch([1, 2, 3, 4]).is_quantity


def test_texts_without_spaces_are_texts():
    assert sketch(["这部电影很好看", "不好"]).is_text
    assert not sketch(["a1b2", "c3d4"]).is_text


@pytest.mark.parametrize("separator", ["|", ";", ","])
def test_what_separates_labels(separator):
    cells = [f"red{separator}blue", "red", f"blue{separator}green", "green", "red", "blue"]
    assert sketch(cells).separator == separator
    assert (
        sketch([f"a long text{separator} with pieces of its own {n}" for n in range(9)]).separator
        is None
    )


TABLE = TableSketch(
    path="t.csv",
    columns=sketch_columns(
        ["id", "Label"], [{"id": str(n), "Label": "ab"[n % 2]} for n in range(8)]
    ),
)


def find(table, **changes):
    asked = {"names": ("label",), "fits": lambda each: True, "rank": None, **changes}
    return table.find("label_column", **asked)


def test_a_usual_name_wins_whatever_its_case_and_then_the_rank():
    assert find(TABLE) == "Label"
    assert find(TABLE, names=("y",)) is None
    assert find(TABLE, names=("y",), rank=lambda each: -each.distinct) == "id"
    assert find(TABLE, taken=("Label",)) is None


def test_what_is_given_is_taken():
    given = TableSketch(path="t.csv", columns=TABLE.columns, given={"label_column": "other"})
    assert find(given) == "other"


def test_a_missing_column_is_named_with_what_there_is():
    with pytest.raises(
        UsageError, match=r"t\.csv: no column looks like a label; it has id \(number, 8"
    ):
        TABLE.column("label_column", "a label", names=(), fits=lambda each: False, rank=len)

"""Sketches of columns, and the column that is meant."""

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.sketches import TableSketch, check_first_line, sketch_columns


def sketch(values):
    return sketch_columns(["c"], [{"c": value} for value in values])[0]


@pytest.mark.parametrize(
    ("values", "kind", "whole"),
    [
        (["1", "2.5"], "number", False),
        ([1, "2"], "number", True),
        (["1", "two"], "text", False),
        (["nan", "1", "NA"], "number", True),  # rows without a number are rejected
        (["nan", "NA"], "text", False),
        ([["a"], ["b"]], "list", False),
        (["{a,b}", "{c}"], "list", False),
        (["<a><b>", "<c>", ""], "list", False),
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


@pytest.mark.parametrize("separator", ["|", ";", ",", "/", "\n", "\t", " & ", "::", "、", " "])
def test_what_separates_labels(separator):
    cells = [f"red{separator}blue", "red", f"blue{separator}green", "green", "red", "blue"]
    assert sketch(cells).separator == (separator.strip(" ") or " ")
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
    given = TableSketch(path="t.csv", columns=TABLE.columns, chosen={"label_column": "other"})
    assert find(given) == "other"


def test_a_missing_column_is_named_with_what_there_is():
    with pytest.raises(
        UsageError, match=r"t\.csv: no column looks like a label; it has id \(number, 8"
    ):
        TABLE.column("label_column", "a label", names=(), fits=lambda each: False, rank=len)


def test_other_columns_that_fit_are_known_where_the_rank_chose():
    columns = sketch_columns(["a", "b"], [{"a": "xy"[n % 2], "b": "xyz"[n % 3]} for n in range(9)])
    table = TableSketch(path="t.csv", columns=columns)
    assert find(table, rank=lambda each: each.distinct) == "a"
    assert table.rivals == {"label_column": ["b"]}


@pytest.mark.parametrize("value", ["1.0", "TRUE", "no", "x"])
def test_columns_of_zeros_and_ones_in_other_words(value):
    assert sketch([value, value]).binary


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        (
            ("ham", "Go until jurong point, crazy.."),
            [("ham", "Ok lar"), ("spam", "x"), ("ham", "y")],
        ),
        (("3", "Stocks", "They fell."), [("3", "a", "b"), ("4", "c", "d"), ("3", "e", "f")]),
        (("It rains in Spain.", "Il pleut en Espagne."), [("Go.", "Va."), ("Run.", "Cours.")]),
    ],
)
def test_a_first_line_like_the_rows_is_no_header(first, rows):
    """SMS Spam, AG News and Tatoeba are published without a header."""
    with pytest.raises(UsageError, match=r"^t\.tsv: its first line looks like a row .*header=no"):
        check_first_line("t.tsv", first, [dict(zip(first, row, strict=True)) for row in rows])


@pytest.mark.parametrize("first", [("", "text", "spam"), ("What do you think of it?", "rating")])
def test_names_that_are_also_cells_make_no_row(first):
    rows = [dict.fromkeys(first, "spam"), dict.fromkeys(first, "spam"), dict.fromkeys(first, "")]
    check_first_line("t.csv", first, rows)


@pytest.mark.parametrize(
    "cells",
    [
        [f"{day:02}/{month:02}/2024" for day in range(1, 6) for month in range(1, 6)],
        ["N/A", "yes", "no"] * 5,
        ["credit card", "debit card"] * 5,
        ["R&B", "rock"] * 5,
        [f"show {what} to {city} {day}" for what in "abcd" for city in "efgh" for day in "ijkl"],
    ],
)
def test_dates_and_names_are_no_lists(cells):
    assert sketch(cells).separator is None


def test_objects_of_zeros_and_ones_are_lists_of_labels():
    assert sketch([{"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}]).is_label_list
    assert sketch(['{"a": 1}', '{"b": 0}']).is_label_list
    assert not sketch([{"id": "x"}, {"id": "y"}]).is_label_list


def test_the_line_below_titles_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Export 2024,,\n,,\nBody,Label\na b,x\n")
    table = TableSketch(path=str(path), columns=sketch_columns(["Export 2024"], []))
    with pytest.raises(UsageError, match="line 3 has 'Label': remove the lines above it"):
        table.column("label_column", "a label", names=("label",), rank=lambda each: 0)


def test_a_cell_of_a_usual_name_is_no_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,y\nz,n\n")
    table = TableSketch(path=str(path), columns=sketch_columns(["a", "b"], []))
    with pytest.raises(UsageError, match="no column looks like a label; it has a .*; name it: "):
        table.column("label_column", "a label", names=("y",), fits=lambda each: False)

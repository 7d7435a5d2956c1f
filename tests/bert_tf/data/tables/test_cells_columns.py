"""What is said of a table that lacks a column."""

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.tables import read_table

NO_HEADER = "give --no-header and the columns by number"


@pytest.mark.parametrize(
    ("first_line", "words", "is_header"),
    [
        ("id,body", "it has 'id', 'body'; specify the column", True),
        ("Complaint text,label", "specify the column", True),
        ("the router blinks red all night,1", f"if that is the first row, {NO_HEADER}", False),
        ("3,hardware", NO_HEADER, False),  # a number names nothing
    ],
)
def test_a_header_is_told_from_a_row(tmp_path, first_line, words, is_header):
    path = tmp_path / "a.csv"
    path.write_text(f"{first_line}\nx,y\n")
    with pytest.raises(UsageError) as caught:
        read_table(path, text_columns=["text"])
    assert words in str(caught.value)
    assert ("--no-header" not in str(caught.value)) == is_header


HEADERS = [
    (
        "a.csv",
        "text^label",
        "commas, semicolons, tabs and bars separate columns: for '^' write",
    ),
    ("a.csv", "id~text~label", "first line sep=~"),
    ("a.csv", "text::label", "write one of them in place of '::'"),
    ("a.tsv", "text,label", "in .tsv only tabs separate columns: end its name in .csv for ','"),
    ("a.tsv", "label^text", "for '^' write a first line sep=^ and end its name in .csv"),
]


@pytest.mark.parametrize(("name", "header", "advice"), HEADERS)
def test_a_single_column_may_be_several(tmp_path, name, header, advice):
    path = tmp_path / name
    path.write_text(f"{header}\nx,y\n")
    with pytest.raises(UsageError) as raised:
        read_table(path, text_columns=["text"])
    assert advice in str(raised.value) and "did you mean" not in str(raised.value)
    with pytest.raises(UsageError, match="no column 'texts'; it has "):
        read_table(path, text_columns=["texts"])


def test_ten_columns_are_listed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"c{number}" for number in range(3000)) + "\n")
    with pytest.raises(UsageError) as raised:
        read_table(path, text_columns=["text"])
    assert "'c9' and 2,990 more; " in str(raised.value)
    assert len(str(raised.value)) < 500

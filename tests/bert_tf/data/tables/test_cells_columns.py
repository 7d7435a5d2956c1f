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

"""The message about a table that lacks a column."""

import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.cells import texts_of
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


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        ("<!DOCTYPE html>\n<html></html>\n", InputError, "is an HTML page"),
        ('<?xml version="1.0"?>\n<a/>\n', InputError, "is XML"),
        ("#FORMAT=WebAnno TSV 3.3\n\n1-1\t0-4\tanna\n", InputError, "is WebAnno TSV"),
        ("+---+---+\n| text | b |\n", InputError, "is a table drawn for a terminal"),
        ("\ufeffReport\n\nid;text\n1;a\n", UsageError, "line 3 has 'text': remove the lines"),
        ("# by a tool\n# 2024\ntext,label\n", UsageError, "line 3 has 'text'"),
    ],
)
def test_files_of_another_kind_and_titles_are_named(tmp_path, content, kind, said):
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(kind, match=said):
        read_table(path, text_columns=["text"])


@pytest.mark.parametrize(
    "content",
    [
        "id,type,body\n1,text,a b\n2,image,c\n",
        "id,type,body\nx,text,a b\ny,image,c\n",
        'id,type,body\nx,text,"a, b"\ny,image,c\n',
        "id;type;body\nx;text;a, b, c\ny;image;c\n",
        'body\n"a, text, b"\nc\n',
    ],
)
def test_a_cell_of_the_name_is_no_header(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"it has .*body") as raised:
        read_table(path, text_columns=["text"])
    assert "remove" not in str(raised.value)


def test_ten_columns_are_listed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"c{number}" for number in range(3000)) + "\n")
    with pytest.raises(UsageError) as raised:
        read_table(path, text_columns=["text"])
    assert "'c9' and 2,990 more; " in str(raised.value)
    assert len(str(raised.value)) < 500


# Lists of texts in cells, as JSON has them and as the text of JSON.


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (["a", None, 2, True], ["a", "", "2", "true"]),
        (["a", 2, True, None, " "], ["a", "2", "true"]),
        ('["a", 2.50, "é"]', ["a", "2.5", "é"]),
        ([], []),
        ("", None),
        ("a, b", None),
        ('"a"', None),
        ('{"a": 1}', None),
        (["a", ["b"]], None),
        ([{"text": "a"}], None),
        ({"text": ["a", "b"], "label": ["A", "B"]}, ["a", "b"]),
        ('{"text": ["a", "b"], "label": ["A", "B"]}', ["a", "b"]),
        ("{'text': array(['a', 'b'], dtype=object), 'label': array(['A', 'B'])}", ["a", "b"]),
        ([{"label": "A", "text": "a"}, {"label": "B", "text": "b"}], ["a", "b"]),
        ({"A": "a", "B": "b"}, ["a", "b"]),
        ({"text": ["a", "b"], "label": ["A"]}, None),
        ({"A": "a"}, None),
        ({"A": 1, "B": 0}, None),
        ({"first": "a", "second": "b"}, None),
        ('["\\ud800"]', None),
        ("[" * 100_000, None),
        (7, None),
        (None, None),
    ],
)
def test_a_column_holds_a_list(value, texts):
    assert texts_of({"choices": value}, ["choices"]) == texts


def test_several_columns_are_a_list():
    row = {"b": "[1]", "a": 2, "other": "x"}
    assert texts_of(row, ["a", "missing", "b"]) == ["2", "", "[1]"]
    assert texts_of(row, ["a", "b", "missing"]) == ["2", "[1]"], "without empty ones at the end"
    assert texts_of(row, ["a", "missing"]) == ["2", ""], "but two are left"

"""Rows of CSV and TSV: headers, delimiters, quotes and limits."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import RejectTally
from bert_tf.data.tables.tables import read_table, read_table_blocks


@pytest.mark.parametrize(
    ("name", "content", "delimiter"),
    [
        ("a.csv", b'1,"a; b; c"\n0,plain\n1,"x\ny"\n', ","),
        ("a.csv", b"1;a, b, c\n0;plain\n1;x\n", ";"),
        ("a.csv", b"\n1\ta, b\n0\tplain\n1\tx\n", "\t"),
        ("a.tsv", b"\n1\ta, b\n0\tplain\n1\tx\n", "\t"),
    ],
)
def test_rows_without_a_header_have_numbers_for_names(tmp_path, name, content, delimiter):
    (tmp_path / name).write_bytes(content)
    dialect = TableDialect(has_header=False)
    block = next(read_table_blocks(tmp_path / name, dialect=dialect, text_columns=["2"]))
    assert (block.columns, block.header.raw, block.header.delimiter) == (
        *(("1", "2"), None, delimiter),
    )
    assert block.texts("1") == ["1", "0", "1"]
    first = 1 + content.startswith(b"\n")
    assert block.lines == [first, first + 1, first + 2]
    with pytest.raises(UsageError, match="no column 'text'.*are numbers, here 1 to 2"):
        read_table(tmp_path / name, dialect=dialect, text_columns=["text"])


def test_semicolons_are_found_and_reported(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id;text\n1;a,b\n")
    said = io.StringIO()
    table = read_table(path, text_columns=["text"], console=Console(said))
    assert table.columns == {"text": ["a,b"]}
    assert "separated by semicolons" in said.getvalue()


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b"text,a|b|c\nx,a|b\n", ("text", "a|b|c")),
        (b"text,a|b|c\nx,a|b|c\ny,b\n", ("text", "a|b|c")),
        (b'"text","label"\na|b|c,x\nd|e|f,y\n', ("text", "label")),
        (b"a, b|text|c\n1|x|2\n", ("a, b", "text", "c")),
        (b"text|c\nx|1\ny\nz|2|3\n", ("text", "c")),
    ],
)
def test_bars_separate_columns_where_rows_agree_or_nothing_else_does(tmp_path, content, columns):
    assert read_block(tmp_path / "a.csv", content).columns == columns


def read_block(path, content, **keys):
    path.write_bytes(content)
    return next(read_table_blocks(path, text_columns=["text"], **keys))


TEXTS = st.lists(st.text('ab"\t\n ', min_size=1).filter(str.strip), min_size=2, max_size=6)


@given(TEXTS)
def test_a_tsv_with_quoted_cells_as_pandas_writes_them(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("tsv") / "a.tsv"
    texts = [*texts, 'so "x"']
    written, said = io.StringIO(), io.StringIO()
    rows = csv.writer(written, delimiter="\t", lineterminator="\n")
    rows.writerows([("text", "label"), *((text, "y") for text in texts)])
    block = read_block(path, written.getvalue().encode(), console=Console(said))
    assert block.texts("text") == texts
    assert block.rejects == []
    assert "cells are quoted, so it is read like CSV" in said.getvalue()


@pytest.mark.parametrize(
    "rows",
    [
        '"a" he said\tx\n',
        '"a\tx\nb"\tx\n',
        '"a"\tx\n',
        'a "" b\tx\n',
        '"\tx\n',
        '"a ""b""\tx\nc\tx\n',
    ],
)
def test_quotes_of_a_tsv_that_is_not_quoted_are_characters(tmp_path, rows):
    """The files of GLUE are such."""
    block = read_block(tmp_path / "a.tsv", f"text\tlabel\n{rows}".encode())
    assert block.raw_rows == rows.splitlines()
    assert [f"{row['text']}\t{row['label']}" for row in block.rows] == rows.splitlines()


def test_lines_that_repeat_the_header_are_rejected(tmp_path):
    block = read_block(tmp_path / "a.csv", b"text,label\na,x\ntext,label\nb,y\ntext,y\n")
    assert block.texts("text") == ["a", "b", "text"]
    assert [(each.line, each.reason) for each in block.rejects] == [(3, "repeats the header")]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize(
    "again", ["text\tlabel", "Text\tLABEL", " text \tlabel ", "\ufefftext\tlabel"]
)
def test_headers_of_joined_files_may_be_written_otherwise(tmp_path, name, again):
    content = f"text\tlabel\na\tx\n{again}\nlabel\ttext\n"
    block = read_block(tmp_path / name, content.encode())
    assert (block.texts("text"), block.lines) == (["a", "label"], [2, 4])
    assert [(each.line, each.reason) for each in block.rejects] == [(3, "repeats the header")]


def test_headers_with_and_without_quotes_are_the_same(tmp_path):
    content = b'"text","label"\r\na,x\r\ntext,label\r\n\xef\xbb\xbf"text","label"\r\nb,y\r\n'
    block = read_block(tmp_path / "a.csv", content)
    assert block.texts("text") == ["a", "b"]
    assert [each.line for each in block.rejects] == [3, 4]


def test_the_name_of_a_single_column_may_be_a_text(tmp_path):
    block = read_block(tmp_path / "a.csv", b"text\nText\ntext\n")
    assert (block.texts("text"), [each.line for each in block.rejects]) == (["Text"], [3])


@pytest.mark.parametrize(
    ("first", "delimiter"), [("sep=;;;", ";"), ("sep=;", ";"), ("SEP=^", "^"), ('"sep=,"', ",")]
)
def test_the_delimiter_that_excel_names_is_taken(tmp_path, first, delimiter):
    content = f'{first}\r\ntext{delimiter}label\r\n"a, b"{delimiter}x\r\n'
    block = read_block(tmp_path / "a.csv", content.encode())
    assert (block.columns, block.rows, block.lines) == (
        ("text", "label"),
        [{"text": "a, b", "label": "x"}],
        [3],
    )


def test_empty_columns_at_the_end_are_left_out(tmp_path):
    content = b"text;label;;\na;x;;\n;;;\nb;y\nc;z;;a note\nd;w;;;\ne;v;;;more\n"
    block = read_block(tmp_path / "a.csv", content)
    assert block.columns == ("text", "label")
    assert block.texts("text") == ["a", "b", "c", "d"]
    expected = ["a;x;;", "b;y;;", "c;z;;a note", "d;w;;"]
    assert block.raw_rows == expected, "as many cells as the header"
    assert block.rows[2] == {"text": "c", "label": "z", "Unnamed: 3": "a note"}
    assert [(each.line, each.reason) for each in block.rejects] == [(7, "too many cells")]
    block = read_block(tmp_path / "a.csv", b'text,label\na,x,\nb,y,""\nc,z\n')
    assert block.raw_rows == ["a,x", "b,y", "c,z"]


@pytest.mark.parametrize(
    ("header", "names"),  # as pandas 2 reads them
    [
        (",,text", ["Unnamed: 0", "Unnamed: 1", "text"]),
        ("id,,text,,label", ["id", "Unnamed: 1", "text", "Unnamed: 3", "label"]),
        ("id, ,text, ", ["id", "Unnamed: 1", "text", "Unnamed: 3"]),
        ("Labels,Labels,text", ["Labels", "Labels.1", "text"]),
        ("Labels,Labels.1,Labels,text", ["Labels", "Labels.1", "Labels.2", "text"]),
        ("Unnamed: 1,,text", ["Unnamed: 1", "Unnamed: 1.1", "text"]),
    ],
)
def test_columns_that_nothing_reads_may_have_equal_names_or_none(tmp_path, header, names):
    cells = [f"cell {number}" for number in range(len(names))]
    content = f"{header}\n{','.join(cells)}\nz{',z' * (len(names) - 1)}\n{header}\n"
    block = read_block(tmp_path / "b.csv", content.encode())
    assert list(block.rows[0].items()) == list(zip(names, cells, strict=True))
    assert block.raw_rows[0] == ",".join(cells)
    assert [(each.line, each.reason) for each in block.rejects] == [(4, "repeats the header")]


@pytest.mark.parametrize(
    "row",
    [
        '1,"she said \\"river\\" and left"',
        '1,"\\"river\\""',
        '1,"river, \\"and\\", stone"',
        '1,"a \\", b"',
    ],
)
def test_quotes_after_backslashes_are_named_with_a_cure(tmp_path, row):
    """Spark writes them by default."""
    block = read_block(tmp_path / "a.csv", f"id,text\n{row}\n2,late\n".encode())
    assert block.texts("text") == ["late"]
    (summary,) = RejectTally(block.rejects).summaries()
    assert summary.reason == "quote after a backslash, where CSV doubles it"
    assert '.option("escape"' in summary.remedy


def test_a_backslash_before_a_doubled_quote_is_a_character(tmp_path):
    block = read_block(tmp_path / "a.csv", b'id,text\n1,"a \\"" b"\n2,"c \\"\n')
    assert block.texts("text") == ['a \\" b', "c \\"]


def test_bars_separate_columns(tmp_path):
    said = io.StringIO()
    block = read_block(tmp_path / "a.csv", b"text|label\na, b; c|x\n", console=Console(said))
    assert block.rows == [{"text": "a, b; c", "label": "x"}]
    assert "separated by bars" in said.getvalue()


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_first_line_beyond_the_limit_is_one_line(tmp_path, name, has_header):
    path = tmp_path / name
    path.write_text("\n" + "x" * 1001 + "\ny\n")
    dialect = TableDialect(max_row_characters=1000, has_header=has_header)
    with pytest.raises(
        InputError, match=f"{name}:2: the first line has more than 1,000 characters"
    ):
        read_table(path, dialect=dialect, text_columns=["1"])


@given(
    rows=st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=2, max_size=2
        ),
        min_size=1,
        max_size=8,
    ),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, line_end):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator=line_end)
    writer.writerows([["first", "second"], *rows])
    path.write_bytes(written.getvalue().encode())
    block = next(read_table_blocks(path))
    assert [list(row.values()) for row in block.rows] == rows
    assert line_end.join([block.header.raw, *block.raw_rows, ""]) == written.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b'"text", "label"\n"a", "b"\n', r"a\.csv:1: blanks before the quotes of ' \"la"),
        ("a.tsv", b"text\tlabel\ra\tb\r", r"a\.tsv:1: lines end with CR; convert them"),
    ],
)
def test_headers_that_would_be_read_as_others_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name, text_columns=["text"])


def test_a_quoted_tsv_with_lines_that_end_with_cr_is_an_error(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b'"text"\t"label"\r' + b'"a"\t"b"\r' * 20)
    with pytest.raises(InputError, match="the first line has more than 50 characters"):
        read_table(path, dialect=TableDialect(max_row_characters=50), text_columns=["text"])

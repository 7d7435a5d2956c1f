"""Tables: bytes in, rows, line numbers and rejects out."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.cells import cell_text
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import count_reasons, read_rejects, write_rejects
from bert_tf.data.tables.tables import read_table, read_table_blocks, table_format


def read_all(folder: Path, name: str, content: bytes, **needed):
    path = folder / name
    path.write_bytes(content)
    return next(read_table_blocks(path, **needed))


COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}
ONE_ROW = ([{"id": "1", "text": "x"}], [2])
ROWS = [
    ("plain", "a.csv", b"id,text\n1,x\n", [{"id": "1", "text": "x"}], [2]),
    (
        "byte-order mark and CRLF",
        "a.csv",
        b"\xef\xbb\xbfid,text\r\n1,x\r\n",
        [{"id": "1", "text": "x"}],
        [2],
    ),
    (
        "line ends and quotes inside cells",
        "a.csv",
        b'id,text\n1,"two\nlines"\n2,"a ""b"""\n',
        [{"id": "1", "text": "two\nlines"}, {"id": "2", "text": 'a "b"'}],
        [2, 4],
    ),
    ("UTF-16", "a.csv", "id,text\n1,x\n".encode("utf-16"), *ONE_ROW),
    ("CR alone", "a.csv", b"id,text\r1,x\r", *ONE_ROW),
    ("no line end at the end", "a.csv", b"id,text\n1,x", [{"id": "1", "text": "x"}], [2]),
    ("blank lines", "a.csv", b"\nid,text\n\n1,x\n \t\n\n", [{"id": "1", "text": "x"}], [4]),
    ("formula stays", "a.csv", b"id,text\n1,=1+2\n", [{"id": "1", "text": "=1+2"}], [2]),
    ("header with line end", "a.csv", b'"i\nd",text\n1,x\n', [{"i\nd": "1", "text": "x"}], [3]),
    ("tabs, no quoting", "a.tsv", b'id\ttext\n1\t"x\n', [{"id": "1", "text": '"x'}], [2]),
    ("tabs, CRLF", "a.tsv", b"id\ttext\r\n1\t x \r\n", [{"id": "1", "text": " x "}], [2]),
    (
        "objects",
        "a.jsonl",
        b'{"id": 1, "text": "x"}\n\n{"id": null}\n',
        [{"id": 1, "text": "x"}, {"id": None}],
        [1, 3],
    ),
    ("escaped pair", "a.json", b'{"text": "\\ud83d\\ude00"}\n', [{"text": "\U0001f600"}], [1]),
    *(
        (f"compressed{ending}", f"a.csv{ending}", compress(b"id,text\n1,x\n"), *ONE_ROW)
        for ending, compress in COMPRESS.items()
    ),
    ("compressed by name", "a.TAB.GZ", gzip.compress(b"id\ttext\n1\tx\n", mtime=0), *ONE_ROW),
    (
        "compressed in parts",
        "a.csv.bz2",
        bz2.compress(b"id,te") + bz2.compress(b"xt\n1,x\n"),
        *ONE_ROW,
    ),
]


@pytest.mark.parametrize(
    ("name", "content", "rows", "lines"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_rows_and_their_lines(tmp_path, name, content, rows, lines):
    block = read_all(tmp_path, name, content)
    assert (block.rows, block.lines, block.rejects) == (rows, lines, [])


REJECTS = [
    ("too many", "a.csv", b"id,text\n1,x,y\n2,ok\n", {2: "too many cells"}),
    ("too few", "a.csv", b"id,text\n1\n2,ok\n", {2: "too few cells"}),
    ("not UTF-8", "a.csv", b"id,text\n1,caf\xe9\n2,ok\n", {2: "invalid UTF-8"}),
    ("unclosed quote at the end", "a.csv", b'id,text\n1,"x\n2,ok\n', {2: "quote is not closed"}),
    (
        "unclosed quote, quotes later",
        "a.csv",
        b'id,text\n1,"x\n2,ok\n3,"o,k"\n',
        {2: "quote is not closed"},
    ),
    (
        "unclosed quote twice",
        "a.csv",
        b'id,text\n1,"x\n2,"y\n3,ok\n',
        {2: "quote is not closed", 3: "quote is not closed"},
    ),
    ("text after quote", "a.csv", b'id,text\n1,"x"y\n2,ok\n', {2: "text after a closing quote"}),
    ("empty", "a.csv", b"id,text\n1, \n2,ok\n", {2: "column 'text' is empty"}),
    ("tabs", "a.tsv", b"id\ttext\n1\tx\ty\n2\tok\n", {2: "too many cells"}),
    ("tabs alone", "a.tsv", b"id\ttext\n\t\n \n2\tok\n", {2: "column 'text' is empty"}),
    ("tabs alone in CSV", "a.csv", b"id\ttext\n\t\n2\tok\n", {2: "column 'text' is empty"}),
    ("no-break space", "a.csv", "text\n\xa0\nok\n".encode(), {2: "column 'text' is empty"}),
    ("not JSON", "a.jsonl", b'{"text": \n{"text": "ok"}\n', {1: "not JSON"}),
    ("deep JSON", "a.jsonl", b"[" * 100_000 + b'\n{"text": "ok"}\n', {1: "not JSON"}),
    ("no object", "a.jsonl", b'[1, 2]\n{"text": "ok"}\n', {1: "not a JSON object"}),
    (
        "key twice",
        "a.jsonl",
        b'{"text": "a", "text": "b"}\n{"text": "ok"}\n',
        {1: "duplicate key"},
    ),
    ("key absent", "a.jsonl", b'{"id": 3}\n{"text": "ok"}\n', {1: "column 'text' is missing"}),
    ("null", "a.jsonl", b'{"text": null}\n{"text": "ok"}\n', {1: "column 'text' is empty"}),
    ("number", "a.jsonl", b'{"text": 17}\n{"text": "ok"}\n', {1: "column 'text' is not text"}),
    (
        "lone surrogate",
        "a.jsonl",
        b'{"text": "\\uD800"}\n{"text": "ok"}\n',
        {1: "lone surrogate"},
    ),
    ("bytes", "a.jsonl", b'{"text": "\xff"}\n{"text": "ok"}\n', {1: "invalid UTF-8"}),
]


@pytest.mark.parametrize(
    ("name", "content", "rejects"), [row[1:] for row in REJECTS], ids=[row[0] for row in REJECTS]
)
def test_bad_rows_are_rejected_and_the_rest_is_read(tmp_path, name, content, rejects):
    block = read_all(tmp_path, name, content, text_columns=["text"])
    assert {reject.line: reject.reason for reject in block.rejects} == rejects
    assert block.texts("text")[0] == "ok"
    assert all(str(tmp_path / name) == reject.source for reject in block.rejects)


FAULTS = [
    ("empty", "a.csv", b"", InputError, "is empty"),
    ("header only", "a.csv", b"id,text\n", InputError, "no rows"),
    ("only bad rows", "a.csv", b"id,text\n1\n", InputError, "too few cells, first at "),
    ("no object at all", "a.jsonl", b"x\n", InputError, "1 × not JSON, first at "),
    ("column twice", "a.csv", b"id,text,text\n1,a,b\n", InputError, "'text' appears twice"),
    (
        "header not UTF-8",
        "a.csv",
        b"id,text,\xe9\n1,a,b\n",
        InputError,
        "looks like cp1252; give --encoding cp1252",
    ),
    ("no header, equal cells", "a.csv", b"1,1,x\n0,1,y\n", UsageError, "--no-header"),
    ("no header", "a.tsv", b"1\tgood film\n0\tbad\n", UsageError, "--no-header"),
    ("pretty JSON", "a.json", b'[\n {"text": "a"}\n]\n', InputError, "is one JSON list"),
    ("a list on a line", "a.json", b'[{"text": "a"}, {"text": "b"}]\n', InputError, "jq -c"),
    ("damaged compression", "a.csv.gz", b"\x1f\x8b\x08\x00broken", InputError, "damaged"),
    *(
        (f"cut{ending}", f"a.tsv{ending}", compress(b"text\nx\n" * 999)[:-9], InputError, "damaged")
        for ending, compress in COMPRESS.items()
    ),
    ("not compressed", "a.csv.gz", b"id,text\n1,x\n", InputError, "damaged"),
    ("unknown ending", "a.doc", b"", UsageError, "must end in .csv"),
    ("spreadsheet", "a.xlsx", b"", UsageError, "is a spreadsheet; save its sheet as CSV"),
    ("spreadsheet of LibreOffice", "a.ODS", b"", UsageError, "is a spreadsheet; save its sheet"),
    ("column missing", "a.csv", b"id,Texts\n1,a\n", UsageError, "did you mean 'Texts'"),
    ("key missing", "a.jsonl", b'{"txt": "a"}\n', UsageError, "did you mean 'txt'"),
]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [row[1:] for row in FAULTS],
    ids=[row[0] for row in FAULTS],
)
def test_unusable_files_are_refused_in_one_line(tmp_path, name, content, error, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error) as raised:
        list(read_table_blocks(path, text_columns=["text"]))
    assert message in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_unknown_arguments_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(TypeError, match="unknown arguments: text_column$"):
        read_table(tmp_path / "a.csv", text_column=["text"])


def test_names_and_cells():
    with pytest.raises(UsageError, match=r"^/: is a folder; give a file in it$"):
        table_format("/")
    assert [table_format(name) for name in ("a.csv", "b.tsv.gz", "c.JSONL", "d.json")] == [
        "csv",
        "tsv",
        "jsonl",
        "jsonl",
    ]
    assert [cell_text(value) for value in ("a", 1, 1.5, True, None)] == [
        "a",
        "1",
        "1.5",
        "true",
        "",
    ]


def test_rejects_are_counted_and_written(tmp_path):
    block = read_all(tmp_path, "a.csv", b"text\na,b\nok\nc,d\n")
    assert count_reasons(block.rejects) == {"too many cells": 2}
    write_rejects(tmp_path / "rejects.jsonl", block.rejects)
    lines = (tmp_path / "rejects.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert '"line": 2' in lines[0]


@pytest.mark.parametrize("key", ["_task_hash", "label", "accept"])
def test_rows_of_prodigy_that_were_not_accepted_are_rejected(tmp_path, key):
    answers = ("accept", "reject", "ignore", None)
    rows = [{"text": str(n), key: n, "answer": each} for n, each in enumerate(answers)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = read_table(path, text_columns=["text"])
    assert table.columns == {"text": ["0", "3"]}
    assert count_reasons(table.rejects) == {"annotation is not accepted": 2}
    assert len(read_table(path, text_columns=["text"], list_columns=["answer"])) == 4
    path.write_text(json.dumps(rows[1]) + "\n")
    with pytest.raises(InputError, match="its only row cannot be used: 1 × annotation is not acc"):
        read_table(path, text_columns=["text"])


def test_an_answer_that_is_a_text_is_no_annotation(tmp_path):
    row = {"question": "To spurn is to", "options": ["reject", "welcome"], "answer": "reject"}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert read_table(path, text_columns=["question"]).columns == {"question": [row["question"]]}


def test_rows_under_a_key_are_told_from_articles(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"data": [{"text": "a"}, {"text": "b"}]}')
    with pytest.raises(
        InputError, match=r"no list of paragraphs.*; jq -c '\.data\[\]' makes lines"
    ):
        read_table(path, text_columns=["text"])


def test_cells_that_are_needed_are_enough_without_a_header(tmp_path):
    """The sources of STS-B have more cells in some rows."""
    cells = ["news", "1.5", "a lamp", "the lamp", "http://a", "http://b"]
    counts = [4, 6, 5, 4, 3, 6]
    lines = ["\t".join(cells[:count]) for count in counts]
    dialect = TableDialect(has_header=False)
    for first in (0, 1):
        (tmp_path / "a.tsv").write_text("\n".join([lines[first], *lines]) + "\n")
        table = read_table(
            tmp_path / "a.tsv", dialect=dialect, text_columns=["3", "4"], value_columns=["2"]
        )
        assert table.columns == {"3": ["a lamp"] * 6, "4": ["the lamp"] * 6, "2": ["1.5"] * 6}
        assert [(each.line, each.reason) for each in table.rejects] == [(6, "too few cells")]
    block = next(read_table_blocks(tmp_path / "a.tsv", dialect=dialect, text_columns=["3"]))
    assert len(block.rejects) == 4  # whose rows are copied must have as many cells


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rejects_name_the_row_of_a_spreadsheet_beside_the_line(tmp_path, end):
    """In a spreadsheet the header is row 1, and a blank line is a row."""
    cells = [
        ("id", "text"),
        (1, "a"),
        (2, "b\nb"),
        (),
        (3, ""),
        (4, "c\n\nc", 5),
        (6, ""),
        (7, "d"),
    ]
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(cells)
    path = tmp_path / "a.csv"
    path.write_bytes(written.getvalue().replace("\n", end).encode())
    table = read_table(path, text_columns=["text"])
    assert table.columns["text"] == ["a", f"b{end}b", "d"]
    found = [(reject.line, reject.row) for reject in table.rejects]
    assert found == [(6, 5), (7, 6), (10, 7)]
    assert table.rejects[0].place == f"{path}:6 (row 5)"
    (faulty,) = table.rejecting({2: ("is odd", "")}).rejects[3:]
    assert (faulty.line, faulty.row) == (11, 8)
    entry = table.rejects[0].as_dict()
    assert (entry["line"], entry["row"]) == (6, 5)
    write_rejects(tmp_path / "rejects.jsonl", table.rejects)
    assert list(read_rejects(tmp_path / "rejects.jsonl")) == table.rejects


def test_rejects_of_plain_lines_have_no_other_number(tmp_path):
    (tmp_path / "a.csv").write_text("text\na\n \nb,c\n")
    table = read_table(tmp_path / "a.csv", text_columns=["text"])
    assert [(reject.line, reject.row) for reject in table.rejects] == [(4, 0)]
    assert "row" not in table.rejects[0].as_dict()

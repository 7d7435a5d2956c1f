"""Tables: bytes in, rows, line numbers and rejects out."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables import tables
from bert_tf.data.tables.cells import cell_text
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import count_reasons, write_rejects
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
    ("compressed by name", "a.TAB.GZ", gzip.compress(b"id\ttext\n1\tx\n"), *ONE_ROW),
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
def test_bad_rows_are_rejected_and_the_rest_goes_on(tmp_path, name, content, rejects):
    block = read_all(tmp_path, name, content, text_columns=["text"])
    assert {reject.line: reject.reason for reject in block.rejects} == rejects
    assert block.texts("text")[0] == "ok"
    assert all(str(tmp_path / name) == reject.source for reject in block.rejects)


FAULTS = [
    ("empty", "a.csv", b"", InputError, "is empty"),
    ("header only", "a.csv", b"id,text\n", InputError, "no rows"),
    ("only bad rows", "a.csv", b"id,text\n1\n", InputError, "a.csv:2: too few cells"),
    ("no object at all", "a.jsonl", b"x\n", InputError, "a.jsonl:1: not JSON"),
    ("column twice", "a.csv", b"id,text,text\n1,a,b\n", InputError, "'text' appears twice"),
    ("header not UTF-8", "a.csv", b"id,text,\xe9\n1,a,b\n", InputError, "--encoding latin-1"),
    ("no header, equal cells", "a.csv", b"1,1,x\n0,1,y\n", InputError, "--no-header"),
    ("no header", "a.tsv", b"1\tgood film\n0\tbad\n", UsageError, "--no-header"),
    ("pretty JSON", "a.json", b'[\n {"text": "a"}\n]\n', InputError, "over many lines"),
    ("damaged compression", "a.csv.gz", b"\x1f\x8b\x08\x00broken", InputError, "damaged"),
    *(
        (f"cut{ending}", f"a.tsv{ending}", compress(b"text\nx\n" * 999)[:-9], InputError, "damaged")
        for ending, compress in COMPRESS.items()
    ),
    ("not compressed", "a.csv.gz", b"id,text\n1,x\n", InputError, "damaged"),
    ("unknown ending", "a.xlsx", b"", UsageError, "must end in .csv"),
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


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("marked", [False, True])
def test_rows_of_any_encoding(tmp_path, name, encoding, marked):
    text = {
        "a.tsv": "id\ttext\n1\tcafé\n",
        "a.jsonl": '{"id": "1", "text": "café"}\n',
    }.get(name, "id,text\n1,café\n")
    mark = "\ufeff" if marked and encoding in ("utf-8", "utf-16-be") else ""
    content = (mark + text).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    block = next(read_table_blocks(tmp_path / name, dialect=TableDialect(encoding=encoding)))
    assert block.rows == [{"id": "1", "text": "café"}]


def test_bytes_that_an_encoding_lacks_are_rejected_by_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text\nfine\n\x81\n")
    table = read_table(path, dialect=TableDialect(encoding="cp1252"), text_columns=["text"])
    assert [reject.reason for reject in table.rejects] == ["invalid cp1252"]


def test_a_mark_of_another_encoding_is_believed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbftext\nfine\n")
    with pytest.raises(InputError, match="byte-order mark of UTF-8; leave --encoding latin-1 out"):
        read_table(path, dialect=TableDialect(encoding="latin-1"), text_columns=["text"])


def test_a_file_that_is_not_of_its_encoding_at_all(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text\nplain\n")
    with pytest.raises(InputError, match="cannot be read as utf-16"):
        read_table(path, dialect=TableDialect(encoding="utf-16"), text_columns=["text"])


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
    with pytest.raises(UsageError, match="no column 'text'.*have numbers, here 1 to 2"):
        read_table(tmp_path / name, dialect=dialect, text_columns=["text"])


def test_json_lines_have_no_header_to_leave_out(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(UsageError, match="rows of JSON lines have keys"):
        read_table(tmp_path / "a.jsonl", dialect=TableDialect(has_header=False))


def test_missing_file(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_table(tmp_path / "gone.csv", text_columns=["text"])


def test_semicolons_are_found_and_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id;text\n1;a,b\n")
    said = io.StringIO()
    table = read_table(path, text_columns=["text"], console=Console(said))
    assert table.columns == {"text": ["a,b"]}
    assert "separated by semicolons" in said.getvalue()


def test_values_may_be_numbers_but_not_lists(tmp_path):
    path = tmp_path / "a.jsonl"
    values = ["1", "true", "[1]", '"x"', "NaN", "-Infinity", "1e999", "2.5"]
    path.write_text("".join(f'{{"label": {value}}}\n' for value in values))
    table = read_table(path, value_columns=["label"])
    assert table.columns["label"] == ["1", "true", "x", "2.5"]
    assert [reject.line for reject in table.rejects] == [3, 5, 6, 7]
    assert table.rejects[1].reason == "column 'label' is neither text nor number"


@pytest.mark.parametrize("block_rows", [1, 2, 100])
def test_keys_are_looked_for_in_many_objects(tmp_path, block_rows):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n' * 3 + '{"text": "x"}\n')
    blocks = list(read_table_blocks(path, block_rows=block_rows, text_columns=["text"]))
    assert sum(len(block.rejects) for block in blocks) == 3
    assert all(block.columns == ("id", "text") for block in blocks)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.csv", ["id,text", "1,{}", "2,ok"]),
        ("a.csv", ["id,text", '"1","{}"', "2,ok"]),
        ("a.csv", ["id,text", "1" + ',"x\n"' * 400 + "{}", "2,ok"]),
        ("a.tsv", ["id\ttext", "1\t{}", "2\tok"]),
        ("a.jsonl", ['{{"id": 1, "text": "{}"}}', '{{"text": "ok"}}']),
    ],
)
def test_a_row_beyond_the_limit_is_rejected_and_reading_continues(tmp_path, name, lines):
    path = tmp_path / name
    path.write_text("\n".join(lines).format("x" * 1001) + "\n")
    table = read_table(path, dialect=TableDialect(max_row_characters=1000), text_columns=["text"])
    assert table.columns == {"text": ["ok"]}
    assert "row is too long" in {reject.reason for reject in table.rejects}
    assert all(reject.line > 0 for reject in table.rejects)


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


BOMBS = {
    "a.csv.gz": (b"text,label\n", b"x" * (1 << 20)),  # a line without end
    "b.csv.gz": (b'text,label\n"', b"x\n" * (1 << 19)),  # a cell without end
    "a.tsv.gz": (b"text\tlabel\n", b"x" * (1 << 20)),
    "a.jsonl.gz": (b'{"text": "', b"x" * (1 << 20)),
    "b.jsonl.gz": (b"", b"\n" * (1 << 13)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_little_that_unpacks_to_much_takes_little_memory(tmp_path, name):
    start, repeated = BOMBS[name]
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as stream:
        stream.write(start)
        for _ in range(64):
            stream.write(repeated)
    dialect = TableDialect(max_row_characters=1 << 20, max_table_megabytes=8)
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            read_table(tmp_path / name, dialect=dialect, text_columns=["text"])
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("row", ["x" * 1000, "x", ""])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_rows_that_take_more_memory_than_allowed_are_one_line(tmp_path, name, row):
    path = tmp_path / name
    rows = 4_000_000 // (len(row) + 200)
    if name == "a.csv":
        path.write_text("text,n\n" + f"{row},1\n" * rows)
    else:
        path.write_text((json.dumps({"text": row}) + "\n") * rows)
    with pytest.raises(
        InputError, match="take more than 1 MB of memory; give fewer rows, or raise"
    ):
        read_table(path, dialect=TableDialect(max_table_megabytes=1), text_columns=["text"])
    if row:
        read_table(path, dialect=TableDialect(max_table_megabytes=8), text_columns=["text"])


def test_long_rows_are_read_in_smaller_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_CHARACTERS", 1000)
    path = tmp_path / "a.jsonl"
    path.write_text((json.dumps({"text": "x" * 300}) + "\n") * 10)
    blocks = list(read_table_blocks(path, text_columns=["text"]))
    assert sum(block.rows_in for block in blocks) == 10
    assert max(block.rows_in for block in blocks) == 4


def test_first_rows_only(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\na\nb,c\nd\ne\n")
    table = read_table(path, text_columns=["text"], max_rows=3)
    assert table.columns["text"] == ["a", "d"]
    assert len(table.rejects) == 1


def test_blocks_hold_every_row_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\n" + "".join(f"row {n}\n" if n % 3 else "a,b\n" for n in range(50)))
    blocks = list(read_table_blocks(path, block_rows=7, text_columns=["text"]))
    assert [block.rows_in for block in blocks] == [7] * 7 + [1]
    assert [text for block in blocks for text in block.texts("text")] == [
        f"row {n}" for n in range(50) if n % 3
    ]
    assert blocks[0].header.raw == "text"


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


def test_names_and_cells():
    with pytest.raises(UsageError, match=r"^/: is a folder; name the file to read in it$"):
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


class FailingStream(io.RawIOBase):
    """Gives a few rows, then loses its connection."""

    def __init__(self, content: bytes):
        self._left = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        read = self._left.readinto(buffer)
        if not read:
            raise ConnectionError("connection reset\nby peer")
        return read


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.json", "x.jsonl"])
def test_storage_that_fails_is_told_and_opened_by_its_name(name):
    asked = []

    def opener(path):
        asked.append(path)
        return FailingStream(b'{"text": "a"}\n' if ".json" in name else b"text\na\n")

    with pytest.raises(InputError) as failure:
        list(read_table_blocks(f"far://b/{name}", block_rows=1, opener=opener))
    assert str(failure.value) == (
        f"far://b/{name}: cannot be read to its end (connection reset); try again, or copy the file"
    )
    assert set(asked) == {f"far://b/{name}"}

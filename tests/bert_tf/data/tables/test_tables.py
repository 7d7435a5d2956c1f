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
import pyarrow.parquet as pq
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables import tables
from bert_tf.data.tables.cells import cell_text
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import count_reasons, read_rejects, write_rejects
from bert_tf.data.tables.tables import first_rows, read_table, read_table_blocks, table_format


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


BOMBS = {
    "a.csv.gz": (b"text,label\n", b"x" * (1 << 20)),  # a line without end
    "b.csv.gz": (b'text,label\n"', b"x\n" * (1 << 19)),  # a cell without end
    "a.tsv.gz": (b"text\tlabel\n", b"x" * (1 << 20)),
    "a.jsonl.gz": (b'{"text": "', b"x" * (1 << 20)),
    "b.jsonl.gz": (b"", b"\n" * (1 << 13)),
}


@pytest.mark.slow
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


def test_rows_of_prodigy_that_were_not_accepted_are_rejected(tmp_path):
    answers = ("accept", "reject", "ignore", None)
    rows = [{"text": str(n), "_task_hash": n, "answer": each} for n, each in enumerate(answers)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = read_table(path, text_columns=["text"])
    assert table.columns == {"text": ["0", "3"]}
    assert count_reasons(table.rejects) == {"annotation is not accepted": 2}
    assert len(read_table(path, text_columns=["text"], list_columns=["answer"])) == 4
    path.write_text(json.dumps(rows[1]) + "\n")
    with pytest.raises(InputError, match="its only row cannot be used: 1 × annotation is not acc"):
        read_table(path, text_columns=["text"])


def test_first_rows_have_all_columns_and_no_faults(tmp_path):
    columns = {"text": ["x", "y"], "part": ["train", "dev"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("text,part\nx,train\ny,dev\nz\n")
    for name in ("a.parquet", "a.csv"):
        block = first_rows(tmp_path / name)
        assert block.columns == ("text", "part")
        assert [row["part"] for row in block.rows] == ["train", "dev"]
    assert first_rows(tmp_path / "missing.csv") is None
    (tmp_path / "b.csv").write_text("text,part\n")
    assert first_rows(tmp_path / "b.csv") is None


def test_rows_under_a_key_are_told_from_articles(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"data": [{"text": "a"}, {"text": "b"}]}')
    with pytest.raises(
        InputError, match=r"no list of paragraphs.*; jq -c '\.data\[\]' makes lines"
    ):
        read_table(path, text_columns=["text"])


LONG_TSV = [
    (f"the lamp number {number} was warm and so on and on and on", "ab") for number in range(24_000)
]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize(
    "quoted", ['the lamp was "so" warm', "one\tlamp", "one\nlamp", "so\r\nwarm"]
)
def test_quotes_that_come_late_are_quotes(tmp_path, name, quoted):
    """As pandas writes them, which quotes by need: the first one is beyond what is looked at."""
    rows = list(LONG_TSV)
    rows[21_000] = (quoted, "x")
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t", lineterminator="\n").writerows([("text", "label"), *rows])
    content = stream.getvalue().encode()
    assert len(content) > 1 << 20 and b'"' not in content[: 1 << 20]
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    shown = io.StringIO()
    needed = {"text_columns": ["text"], "value_columns": ["label"]}
    table = read_table(tmp_path / name, console=Console(shown), **needed)
    assert list(zip(table.columns["text"], table.columns["label"], strict=True)) == rows
    assert not table.rejects
    assert "later cells are quoted, so it is read like CSV" in shown.getvalue()


@pytest.mark.parametrize(
    "plain", ['" so it goes', '" so " it goes', '"so" it goes', '"so it goes"']
)
def test_late_marks_of_speech_are_none(tmp_path, plain):
    rows = list(LONG_TSV)
    rows[21_000] = (plain, "x")
    lines = ["text\tlabel", *map("\t".join, rows)]
    (tmp_path / "a.tsv").write_text("".join(line + "\n" for line in lines))
    table = read_table(tmp_path / "a.tsv", text_columns=["text"])
    assert table.columns["text"] == [text for text, _ in rows]


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
    """As a spreadsheet numbers rows: the header is 1, and a blank line is a row."""
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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv", '"text","label"\n"1","a, b","x"\n"2","c","y"\n"3","d",""\n'),
        ("r.tsv", "text\tlabel\n1\ta, b\tx\n2\tc\ty\n3\td\tz\n"),
        ("r.csv", '"text";"label"\n"first";"a, b";"x"\n"second";"c";"y"\n"third";"d";"z"\n'),
        ("r.csv", '"id","text"\n"1",7,"a, b"\n"2",8,"c"\n"3",9,"d"\n'),
    ],
    ids=["numbers", "tabs", "names", "ids"],
)
def test_names_of_rows_that_r_writes_are_no_cells(name, content, tmp_path):
    block = read_all(tmp_path, name, content.encode(), text_columns=["text"])
    assert block.texts("text") == ["a, b", "c", "d"]
    assert block.header.raw == content.split("\n")[0]


@pytest.mark.parametrize(
    "content",
    [
        b"text,label\nHello, you,x\nDear, me,y\n",
        b"id,text\n1,Hello, you\n2,Dear, me\n3,So, here\n",
        b"n,text\n1,Hello, you\n2,Dear, me\n3,So, here\n",
        b"Row_ID,text\n1,a,b\n2,c,d\n3,e,f\n",
        b'"id","text"\n"1","a","b"\n"2","c","d"\n"3","e","f"\n',
        b'text,label\n1,"a",x\n2,"b",y\n3,"c",z\n',
        b"text,label\n1,a,x\n2,b,y\n",
    ],
    ids=["texts", "ids", "blanks", "capitals", "quotes", "some quotes", "few"],
)
def test_a_comma_too_many_in_every_row_is_no_name(content, tmp_path):
    with pytest.raises(InputError, match="3 where the header has 2"):
        read_table(_written(tmp_path / "a.csv", content), text_columns=["text"])


@pytest.mark.parametrize(
    "content",
    [
        b'"text","label"\n"hello there","pos",\n"bye now","neg",\n',
        b"text,label\n1,hello,\n2,bye,\n3,so,\n",
        b"text,label\n1,hello,\n2,bye,\n3,so, it is\n",
        b'text,label\n"1","hello",""\n"2","bye",""\n',
        b"text,label\ncaf\xe9,x,\nbye,y,\n",
        b'"text","label"\n"caf\xe9","x",\n"bye","y",\n',
    ],
)
def test_separators_at_the_ends_of_lines_shift_no_column(content, tmp_path):
    block = read_all(tmp_path, "a.csv", content, text_columns=["text"])
    assert block.header.columns == ("text", "label")


def test_columns_that_blanks_separate_are_told(tmp_path):
    path = _written(tmp_path / "a.csv", b'"text" "label"\n"1" "a" "x"\n')
    with pytest.raises(
        InputError, match=r"a\.csv:1: blanks separate the columns, as R's .*sep = ','"
    ):
        read_table(path, text_columns=["text"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"text": "a"}\n', "it looks like JSON lines: end its name in .jsonl"),
        (b"a\tb\nc\td\ne\tf\n", "it looks like a table: end its name in .tsv"),
        (b"PK\x03\x04rest", "it is a ZIP archive: unzip it and give the files in it"),
        (gzip.compress(b"a,b\n"), "it is compressed by gzip: end its name in .jsonl.gz"),
        (b"PAR1rest", "it is Parquet: end its name in .parquet"),
        (b"id,My text\n1,a\n2,b\n", "it looks like a table: end its name in .csv"),
        (b"id,My text\n" + b"1,some words\n" * 9_999, "it looks like a table: end its name in"),
        (b"some words\n", "the name must end in .csv"),
        (b"Once, a king.\nHe had, say, a daughter.\nHe was, too.\n", "the name must end in .csv"),
        (b"Yes, sir\nNo, madam\nOh, sir\n", "the name must end in .csv"),
        (b"words, " * 9_999, "the name must end in .csv"),
    ],
    ids=[
        *("json", "tabs", "zip", "gzip", "parquet", "commas", "many rows"),
        *("text", "prose", "speech", "one line"),
    ],
)
def test_a_file_without_a_known_ending_is_looked_at(content, expected, tmp_path):
    path = _written(tmp_path / "part-00000", content)
    with pytest.raises(UsageError) as caught:
        table_format(path)
    assert str(caught.value).startswith(f"{path}: format unknown") and expected in str(caught.value)


def _written(path, content):
    path.write_bytes(content)
    return path

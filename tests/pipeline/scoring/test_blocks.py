"""The same file gives the same rows to `vocab`, `finetune` and `score`, and the same rejects."""

from __future__ import annotations

import functools
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from behavior.readers import (
    COMPRESS,
    WHOLE,
    Rows,
    check_same_rows,
    read_corpus,
    read_labeled,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bert_tf.base.errors import BertPipelineError, InputError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, ScoreConfig, VocabConfig
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.tasks.registry import TASKS
from pipeline.scoring.blocks import cut_table, read_block
from pipeline.scoring.columns import ScoringColumns

LONG = "long " * 20_000
CSV = (
    b"\xef\xbb\xbfid,text\r\n"
    b"1,plain\r\n"
    b'2,"quotes ""in"" it"\r\n'
    b'3,"a, b; c\td"\r\n'
    b'4,"two\r\nlines"\r\n'
    b" \r\n"
    b"5,caf\xe9\r\n"
    b"6\r\n"
    b"7,a,b\r\n" + "8,\U0001f600\r\n".encode() + f"9,{LONG}\r\n".encode() + b"10, \r\n"
    b'11,"unclosed\r\n'
    b'12,"closed" early\r\n'
    b"caf\xe9,beside bytes of another encoding\r\n"
    b"13,last"
)
TSV = (
    b"id\ttext\n"
    b'1\t"quotes" stay\r\n'
    b'2\t"open, ; too\n'
    b"\n"
    b"3\tcaf\xe9\n"
    b"4\n"
    b"5\ta\tb\n"
    b"\t\n" + "6\t\U0001f600\ra\n".encode() + f"7\t{LONG}\n".encode() + b"8\tlast\n"
    b"caf\xe9\tbeside bytes of another encoding\n"
)
JSONL = (
    b'\xef\xbb\xbf{"text": "plain"}\r\n'
    b'{"text": "two\\nlines, \\"quoted\\" \\ud83d\\ude00"}\n'
    b" \t\r\n"
    b'{"text": "caf\xe9"}\n'
    b'{"id": 3}\n'
    b'{"text": "unclosed}\n'
    b'{"text": null}\n'
    b'{"text": 17}\n'
    b'{"text": "\\ud800"}\n'
    b'{"text": "", "id": 1}\n'
    b'{"text": "a", "text": "b"}\n'
    b'{"id": "caf\xe9", "text": "beside bytes of another encoding"}\n'
    b"[1]\n" + json.dumps({"text": LONG}).encode() + b'\n{"text": "last"}'
)
TEXTS = [b"plain", b"two\nlines", b"caf\xe9", None, b"", "\U0001f600".encode(), LONG.encode()]
EMPTY = "column 'text' is empty"
EXPECTED: dict[str, Rows] = {
    "a.csv": (
        {
            2: "plain",
            3: 'quotes "in" it',
            4: "a, b; c\td",
            5: "two\r\nlines",
            11: "\U0001f600",
            12: LONG,
            17: "last",
        },
        [
            (8, "invalid UTF-8"),
            (9, "too few cells"),
            (10, "too many cells"),
            (13, EMPTY),
            (14, "quote is not closed"),
            (15, "text after a closing quote"),
            (16, "invalid UTF-8"),
        ],
    ),
    "a.tsv": (
        {
            2: '"quotes" stay',
            3: '"open, ; too',
            9: "\U0001f600\ra",
            10: LONG,
            11: "last",
        },
        [
            (5, "invalid UTF-8"),
            (6, "too few cells"),
            (7, "too many cells"),
            (8, EMPTY),
            (12, "invalid UTF-8"),
        ],
    ),
    "a.jsonl": (
        {1: "plain", 2: 'two\nlines, "quoted" \U0001f600', 14: LONG, 15: "last"},
        [
            (4, "invalid UTF-8"),
            (5, "column 'text' is missing"),
            (6, "not JSON"),
            (7, EMPTY),
            (8, "column 'text' is not text"),
            (9, "lone surrogate"),
            (10, EMPTY),
            (11, "duplicate key"),
            (12, "invalid UTF-8"),
            (13, "not a JSON object"),
        ],
    ),
    "a.parquet": (
        {1: "plain", 2: "two\nlines", 6: "\U0001f600", 7: LONG},
        [(3, "invalid UTF-8"), (4, EMPTY), (5, EMPTY)],
    ),
}


def parquet_bytes() -> bytes:
    stream = io.BytesIO()
    hashes = pa.array([b"\xff\xfe"] * len(TEXTS), pa.binary())
    table = pa.table({"text": pa.array(TEXTS, pa.binary()), "sha": hashes})
    pq.write_table(table, stream, row_group_size=3)
    return stream.getvalue()


CONTENTS = {"a.csv": CSV, "a.tsv": TSV, "a.jsonl": JSONL, "a.parquet": parquet_bytes()}


@pytest.fixture
def read_scored(make_plan):
    """Texts by line and rejects as `score` reads them."""

    def read(path: Path, dialect: TableDialect = PLAIN, text_column: str = "text") -> Rows:
        columns = ScoringColumns(
            sources={"text": text_column}, fields=TASKS["classification"].predictions
        )
        plan = make_plan(path.name, output="out.csv", dialect=dialect, columns=columns)
        texts, rejects = {}, []
        for reference in cut_table(plan.tables[0], plan):
            block = read_block(reference, plan)
            texts.update(zip(block.lines, block.texts["text"], strict=True))
            rejects += [(reject.line, reject.reason) for reject in block.rejects]
        return texts, rejects

    return read


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        (name, ending)
        for name in CONTENTS
        for ending in COMPRESS
        if name != "a.parquet" or not ending
    ],
)
@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_difficult_cells_are_the_same_for_all_readers(
    tmp_path, read_scored, name, ending, block_bytes
):
    path = tmp_path / f"{name}{ending}"
    path.write_bytes(COMPRESS[ending](CONTENTS[name]))
    for read_rows in (read_labeled, read_scored):
        assert check_same_rows(path, read_rows, block_bytes) == EXPECTED[name]


TABLES = {
    "a.csv": 'id,text\r\n1,"caf\xe9\r\n"\r\n2,b,c\r\n3,last\r\n',
    "a.tsv": "id\ttext\n1\tcaf\xe9\n2\tb\tc\n3\tlast\n",
    "a.jsonl": '{"text": "caf\xe9"}\n{"text": 2}\n{"text": "last"}\n',
}
ENCODED: dict[str, Rows] = {
    "a.csv": ({2: "caf\xe9\r\n", 5: "last"}, [(4, "too many cells")]),
    "a.tsv": ({2: "caf\xe9", 4: "last"}, [(3, "too many cells")]),
    "a.jsonl": ({1: "caf\xe9", 3: "last"}, [(2, "column 'text' is not text")]),
}


def check_all_readers(path: Path, read_scored, *block_sizes: int, **values) -> Rows:
    """Check that `vocab`, `finetune` and `score` find the same rows, and return them.

    Args:
        path: a table.
        read_scored: the fixture.
        block_sizes: of the corpus, in bytes.
        values: config keys of the corpus.
    """
    column = values.get("text_column", "text")
    config = build_section(VocabConfig, {"input": (str(path),), "output": "y", **values})
    dialect = TableDialect.of(config)
    found = []
    for read_rows in (read_labeled, read_scored):
        read = functools.partial(read_rows, dialect=dialect, text_column=column)
        found += [check_same_rows(path, read, size, **values) for size in block_sizes or (WHOLE,)]
    assert all(rows == found[0] for rows in found)
    return found[0]


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("encoding", "option"),
    [
        ("utf-16", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-be", "utf-16-be"),
        ("utf-8-sig", "utf-8"),
        ("cp1252", "cp1252"),
        ("gb18030", "gb18030"),
    ],
)
def test_other_encodings_have_the_rows_of_utf8(
    tmp_path, read_scored, name, encoding, option, ending
):
    path = tmp_path / f"{name}{ending}"
    path.write_bytes(COMPRESS[ending](TABLES[name].encode(encoding)))
    assert check_all_readers(path, read_scored, 5, WHOLE, encoding=option) == ENCODED[name]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("encoding", "option", "broken", "reason"),
    [
        ("cp1252", "cp1252", b"\x81", "invalid cp1252"),
        ("gb18030", "gb18030", b"\xff", "invalid gb18030"),
        ("utf-16-le", "utf-16-le", b"\x41\xd8", "invalid utf-16-le"),
        ("utf-16", "utf-8", b"\x41\xd8", "invalid UTF-8"),
    ],
)
def test_bytes_that_are_not_of_the_encoding_reject_the_row(
    tmp_path, read_scored, name, encoding, option, broken, reason
):
    marked = TABLES[name].replace("caf\xe9", "caf!").encode(encoding)
    mark = "!".encode(encoding.removesuffix("-le") + ("-le" if "16" in encoding else ""))
    (tmp_path / name).write_bytes(marked.replace(mark, broken))
    texts, rejects = check_all_readers(tmp_path / name, read_scored, 5, WHOLE, encoding=option)
    line = min(ENCODED[name][0])
    assert list(texts.values()) == ["last"]
    assert rejects == [(line, reason), *ENCODED[name][1]]


def test_half_a_character_at_the_end_rejects_the_row(tmp_path, read_scored):
    (tmp_path / "a.csv").write_bytes("text\na\nb".encode("utf-16") + b"\0")
    expected = ({2: "a"}, [(3, "invalid UTF-8")])
    assert check_all_readers(tmp_path / "a.csv", read_scored) == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b'\n\nx,"y\nz"\n1\n2,b\n'),
        ("a.csv", b'\r\n \r\nx;"y\nz"\r\n1\r\n2;b\r\n'),
        ("a.tsv", b"\n\nx\ty\n1\n2\tb\n"),
    ],
)
@pytest.mark.parametrize("has_header", [True, False])
def test_tables_with_and_without_header(tmp_path, read_scored, name, content, has_header):
    """Also behind blank lines, in blocks that hold less than these."""
    path = tmp_path / name
    path.write_bytes(content)
    text = "y\nz" if name == "a.csv" else "y"
    values = {"header": has_header, "text_column": text if has_header else "2"}
    texts, rejects = check_all_readers(path, read_scored, 1, 3, WHOLE, **values)
    first = 4 + text.count("\n")
    assert texts == {first + 1: "b"} | ({} if has_header else {3: text})
    assert rejects == [(first, "too few cells")]


@pytest.mark.parametrize("name", [*TABLES, "a.parquet"])
@pytest.mark.parametrize("letter", ["x", "\xe9", "\U0001f600"])
def test_rows_of_more_characters_than_allowed(tmp_path, read_scored, name, letter):
    """The limit counts the row as it is in the file; of Parquet, the text."""
    rows = {
        "a.csv": ("text\n", "{}\n"),
        "a.tsv": ("text\n", "{}\n"),
        "a.jsonl": ("", '{{"text": "{}"}}\n'),
        "a.parquet": ("", "{}"),
    }
    head, row = rows[name]
    room = 1000 - len(row.format("").removesuffix("\n"))
    texts = [letter * room, letter * (room + 1), "last"]
    if name == "a.parquet":
        pq.write_table(pa.table({"text": texts, "other": texts}), tmp_path / name)
    else:
        content = head + "".join(row.format(text) for text in texts)
        (tmp_path / name).write_bytes(content.encode())
    first = 2 if head else 1
    assert check_all_readers(tmp_path / name, read_scored, 9, WHOLE, max_row_characters=1000) == (
        {first: texts[0], first + 2: "last"},
        [(first + 1, "row is too long")],
    )


def test_all_readers_have_one_longest_row():
    sections = (VocabConfig, PreprocessConfig, ScoreConfig, TableDialect)
    assert {section.max_row_characters for section in sections} == {1 << 24}


@pytest.mark.parametrize(
    ("name", "content", "values", "message"),
    [
        ("a.csv", b"id,text,text\n1,2,a\n", {}, "a.csv:1: column 'text' appears twice"),
        ("a.tsv", b"text\ttext\n1\ta\n", {}, "a.tsv:1: column 'text' appears twice"),
        ("a.csv", b"id,texts\n1,a\n", {}, "a.csv: no column 'text'; it has 'id', 'texts'; did"),
        ("a.csv", b"1,a\n", {"header": False}, "without a header are numbers, here 1 to 2"),
        ("a.jsonl", b'{"texts": 1}\n', {}, "a.jsonl: no column 'text'; it has 'texts'; did y"),
        ("a.jsonl", b'{"text": "a"}\n', {"header": False}, "--no-header is for CSV and TSV"),
        ("a.parquet", {"id": "i", "texts": "t"}, {}, "a.parquet: no column 'text'; it has 'id'"),
        ("a.parquet", {"text": "t"}, {"header": False}, "--no-header is for CSV and TSV"),
        ("a.csv", b"text\xff\n1\n", {}, "the header is invalid UTF-8; the file looks like"),
        ("a.csv", b"text\xff\n1\n", {"encoding": "cp1252"}, "did you mean 'text\xff'"),
        ("a.csv", b"", {}, "a.csv: is empty; expected a line with the names"),
        ("a.csv", b'"text\na\n', {}, "a.csv:1: the header is not a CSV row"),
        ("a.csv", b"x" * 1001, {"max_row_characters": 1000}, "line has more than 1,000 char"),
        ("a.csv", b"\xef\xbb\xbftext\na", {"encoding": "cp1252"}, "leave --encoding cp1252 out"),
        ("a.jsonl", b"\xff\xfe{", {"encoding": "cp1252"}, "is UTF-16; give --encoding utf-16"),
    ],
)
def test_unusable_tables_are_refused_by_all_readers_alike(
    tmp_path, read_scored, name, content, values, message
):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pq.write_table(pa.table({key: [value] for key, value in content.items()}), path)
    config = build_section(VocabConfig, {"input": (str(path),), "output": "y", **values})
    errors = []
    for read in (
        lambda: read_labeled(path, TableDialect.of(config)),
        lambda: read_scored(path, TableDialect.of(config)),
        lambda: read_corpus(path, **values),
    ):
        with pytest.raises(BertPipelineError, match=re.escape(message)) as raised:
            read()
        errors.append((type(raised.value), str(raised.value)))
    assert len(set(errors)) == 1


def test_two_columns_of_one_name_in_parquet_are_refused_by_all_readers(tmp_path, read_scored):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([["a"], [1], [2]], ["text", "id", "id"]), path)
    for read in (read_labeled, read_scored, read_corpus):
        with pytest.raises(InputError, match=r"a\.parquet: column 'id' appears twice; rename"):
            read(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.text('ab",;\t\n\r \xe9', max_size=60).map(str.encode)
    | st.lists(st.sampled_from([b'1,"x\n2"\n', b"1,\xff\n", b"2,b\r", b"3\r\n", b'4,"\n'])).map(
        b"".join
    ),
    name=st.sampled_from(["a.csv", "a.tsv"]),
    block_bytes=st.integers(1, 40),
)
@example(body=b'1,"a\r', name="a.csv", block_bytes=3)
def test_random_tables_are_the_same_for_all_readers(tmp_path, read_scored, body, name, block_bytes):
    header = b"id,text\n" if name == "a.csv" else b"id\ttext\n"
    (tmp_path / name).write_bytes(header + body)
    for read_rows in (read_labeled, read_scored):
        check_same_rows(tmp_path / name, read_rows, block_bytes)

"""Rows of Parquet: the values that JSON lines of the same rows have; pyarrow writes the files."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import tracemalloc
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats import parquet
from bert_tf.data.tables.formats.parquet import largest_repeated_value
from bert_tf.data.tables.tables import read_table, read_table_blocks

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": TEXTS | st.none(),
            "count": st.integers(-(2**63), 2**63 - 1) | st.none(),
            "price": st.floats(allow_nan=False, allow_infinity=False) | st.none(),
            "is_new": st.booleans() | st.none(),
            "tags": st.lists(TEXTS, max_size=3) | st.none(),
        }
    ),
    min_size=1,
    max_size=12,
)
KEY = uuid.UUID("12345678-1234-5678-9abc-def012345678")
SCHEMA = pa.schema(
    {
        "text": pa.large_string(),
        "count": pa.int64(),
        "price": pa.float64(),
        "is_new": pa.bool_(),
        "tags": pa.list_(pa.string()),
    }
)


@given(rows=ROWS, group_rows=st.integers(1, 5))
def test_rows_are_those_of_json_lines(tmp_path_factory, rows, group_rows):
    folder = tmp_path_factory.mktemp("rows")
    table = pa.Table.from_pylist(rows, SCHEMA)
    pq.write_table(table, folder / "a.parquet", row_group_size=group_rows)
    rows = [{name: row[name] for name in SCHEMA.names} for row in rows]
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    needed = {"text_columns": ["text"], "value_columns": ["count"], "allow_empty": True}
    (parquet,) = read_table_blocks(folder / "a.parquet", **needed)
    (lines,) = read_table_blocks(folder / "a.jsonl", **needed)
    assert (parquet.columns, parquet.rows, parquet.lines) == (
        lines.columns,
        lines.rows,
        lines.lines,
    )
    assert [json.loads(raw) for raw in parquet.raw_rows] == rows
    assert read_table(folder / "a.parquet", **needed).columns == {
        name: parquet.texts(name) for name in ("text", "count")
    }


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_text_of_any_type(tmp_path, kind):
    strings = pa.array(["One", None, " ", "ä"])
    column = strings.dictionary_encode() if pa.types.is_dictionary(kind) else strings.cast(kind)
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", text_columns=["text"])
    assert (table.columns["text"], table.lines) == (["One", "ä"], [1, 4])
    assert [(reject.line, reject.reason) for reject in table.rejects] == [
        (2, "column 'text' is empty"),
        (3, "column 'text' is empty"),
    ]


def test_bytes_that_are_not_utf8_are_rejected_by_row(tmp_path):
    pq.write_table(pa.table({"text": [b"fine", b"a\xff", None]}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", text_columns=["text"])
    assert table.columns["text"] == ["fine"]
    assert [(reject.line, reject.reason) for reject in table.rejects] == [
        (2, "invalid UTF-8"),
        (3, "column 'text' is empty"),
    ]


def test_columns_that_are_not_needed_are_not_read(tmp_path):
    pq.write_table(pa.table({"text": ["x"], "image": [b"\xff"]}), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", text_columns=["text"]).columns == {"text": ["x"]}


def test_what_json_has_no_type_for_is_text(tmp_path):
    columns = {
        "day": [datetime.date(2026, 1, 31)],
        "price": [decimal.Decimal("1.50")],
        "nested": [{"day": datetime.date(2026, 1, 31)}],
        "key": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([KEY.bytes], pa.binary(16))),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (block,) = read_table_blocks(tmp_path / "a.parquet", text_columns=["day", "price"])
    assert json.loads(block.raw_rows[0]) == {
        "day": "2026-01-31",
        "price": "1.50",
        "nested": {"day": "2026-01-31"},
        "key": str(KEY),
    }


def test_bytes_of_columns_that_are_not_needed_are_base64(tmp_path):
    data = b"\x89PNG\xff"
    columns = {
        "text": ["a", "b"],
        "image": [data, b"plain"],
        "sha": pa.array([b"\xff\xfe", None], pa.binary(2)),
        "nested": [{"bytes": data, "path": "a.png"}, None],
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (block,) = read_table_blocks(tmp_path / "a.parquet", text_columns=["text"])
    assert not block.rejects
    rows = [json.loads(raw) for raw in block.raw_rows]
    encoded = base64.b64encode(data).decode()
    assert rows == [
        {
            "text": "a",
            "image": encoded,
            "sha": "//4=",
            "nested": {"bytes": encoded, "path": "a.png"},
        },
        {"text": "b", "image": "cGxhaW4=", "sha": None, "nested": None},
    ]


@pytest.mark.parametrize("kind", [pa.binary(4), pa.binary(), pa.large_binary(), "dictionary"])
def test_all_bytes_of_a_column_have_one_form(tmp_path, kind):
    values = [b"abcd", b"\xff\x00\x10\x80", b"YWI=", b"\x00\x01\x02\x03", None]
    column = pa.array(values, pa.binary() if kind == "dictionary" else kind)
    column = column.dictionary_encode() if kind == "dictionary" else column
    pq.write_table(pa.table({"text": ["river"] * 5, "key": column}), tmp_path / "a.parquet")
    (block,) = read_table_blocks(tmp_path / "a.parquet", text_columns=["text"])
    found = [row["key"] for row in block.rows]
    assert [each and base64.b64decode(each, validate=True) for each in found] == values


def test_long_rows_are_rejected(tmp_path):
    pq.write_table(pa.table({"text": ["x" * 1001, "ok"]}), tmp_path / "a.parquet")
    dialect = TableDialect(max_row_characters=1000)
    table = read_table(tmp_path / "a.parquet", dialect=dialect, text_columns=["text"])
    assert table.columns["text"] == ["ok"]
    assert [reject.reason for reject in table.rejects] == ["row is too long"]


@pytest.mark.parametrize(
    ("table", "dialect", "error", "message"),
    [
        (pa.table({"txt": ["a"]}), TableDialect(), UsageError, "no column 'text'.*mean 'txt'"),
        (
            pa.table({"text": [1]}),
            TableDialect(),
            InputError,
            "row cannot be used: 1 × .* is not text, first at .*:1 ",
        ),
        (
            pa.table({"text": pa.array([], pa.string())}),
            TableDialect(),
            InputError,
            "has columns but no rows",
        ),
        (pa.table([["a"], ["b"]], ["text", "text"]), TableDialect(), InputError, "appears twice"),
        (pa.table({"text": ["a"]}), TableDialect(has_header=False), UsageError, "have names"),
        (b"PAR1 nonsense", TableDialect(), InputError, "cannot be read as Parquet"),
    ],
)
def test_unusable_files_are_refused_in_one_line(tmp_path, table, dialect, error, message):
    path = tmp_path / "a.parquet"
    if isinstance(table, bytes):
        path.write_bytes(table)
    else:
        pq.write_table(table, path)
    with pytest.raises(error, match=message) as raised:
        read_table(path, dialect=dialect, text_columns=["text"])
    assert "\n" not in str(raised.value)


def test_a_compressed_file_is_refused(tmp_path):
    (tmp_path / "a.parquet.gz").touch()
    with pytest.raises(UsageError, match="random access.*decompress the file"):
        read_table(tmp_path / "a.parquet.gz", text_columns=["text"])


@pytest.mark.parametrize("is_list", [False, True])
def test_values_that_many_rows_repeat_are_decoded_a_few_at_a_time(tmp_path, monkeypatch, is_list):
    monkeypatch.setattr(parquet, "_REPEATED_BYTES", 1 << 20)
    texts = ["x" * 100_000] * 400
    column = pa.array([[text] * 5 for text in texts[:80]] if is_list else texts)
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet", compression="gzip")
    assert (tmp_path / "a.parquet").stat().st_size < 20_000
    before, most = pa.total_allocated_bytes(), 0
    tracemalloc.start()
    try:
        rows = 0
        for block in read_table_blocks(tmp_path / "a.parquet", block_rows=5):
            rows += len(block.rows)
            most = max(most, pa.total_allocated_bytes() - before)
        assert rows == (80 if is_list else 400)
        assert most < 16 << 20
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


# How long values can be, by the bytes of pages; pyarrow writes them.


@pytest.mark.parametrize("size", [1, 1000, 100_000])
@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_the_size_of_a_dictionary_is_found_without_decoding_it(tmp_path, size, compression):
    path = tmp_path / "x.parquet"
    table = pa.table({"text": ["x" * size] * 50})
    pq.write_table(table, path, compression=compression)
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    with path.open("rb") as stream:
        assert largest_repeated_value(stream, column) == size + 4  # with the length before it
    pq.write_table(table, path, compression=compression, use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    with path.open("rb") as stream:
        assert largest_repeated_value(stream, column) == 0
    pq.write_table(table, path, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    with path.open("rb") as stream:
        assert largest_repeated_value(stream, column) >= size

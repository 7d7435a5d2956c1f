"""Limits of tables: rows, memory, blocks, and files that unpack to much."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.errors import InputError
from bert_tf.data.tables import tables
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.tables import first_rows, read_table, read_table_blocks


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

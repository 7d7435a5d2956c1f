"""Parquet in, documents and rejects out; pyarrow writes the files."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from behavior.readers import check_reader, read_corpus

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from bert_tf.data.tables.formats import parquet
from pipeline.corpus.readers.formats import make_reader

TEXTS = [f"document {number}" for number in range(3000)]


def parquet_bytes(row_group_size=None, **columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, row_group_size=row_group_size)
    return stream.getvalue()


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_row_groups_are_splits_and_blocks_are_bounded(tmp_path, compression):
    path = tmp_path / "x.parquet"
    table = pa.table({"id": range(3000), "text": TEXTS})
    pq.write_table(table, path, row_group_size=2000, compression=compression)
    found = read_corpus(path, 20_000)
    blocks = found.blocks
    assert found.splits == [(0, 2000), (2000, 1000)]
    assert found.documents == [[text] for text in TEXTS]
    assert [block.num_documents for block in blocks] == [1024, 976, 1000]
    assert [int(block.document_lines[0]) for block in blocks] == [1, 1025, 2001]
    assert len({block.index for block in blocks}) == 3


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
def test_text_of_any_type_is_read_and_nulls_are_rejected_by_row(tmp_path, kind):
    texts = ["One. Two.", None, "ä" * 5, "", None, "last"]
    strings = pa.array(texts, pa.string())
    column = strings.dictionary_encode() if pa.types.is_dictionary(kind) else strings.cast(kind)
    data = parquet_bytes(row_group_size=4, text=column)
    found = check_reader(tmp_path, "x.parquet", data)
    assert found.documents == [["One.", "Two."], ["ä" * 5], ["last"]]
    assert found.rejects == [
        (2, "column 'text' is empty", ""),
        (5, "column 'text' is empty", ""),
    ]
    assert found.dropped == {"empty document": 1}


def test_bytes_that_are_not_utf8_are_rejected_by_row(tmp_path):
    data = parquet_bytes(text=[b"fine", b"a\xff", b"too"])
    found = check_reader(tmp_path, "x.parquet", data)
    assert found.documents == [["fine"], ["too"]]
    assert found.rejects == [(2, "invalid UTF-8", "at byte 2")]


def test_a_column_beside_nested_ones_is_found(tmp_path):
    path = tmp_path / "x.parquet"
    rows = [{"meta": {"text": "inner"}, "tags": ["a"], "text": "outer"}]
    pq.write_table(pa.Table.from_pylist(rows), path)
    assert read_corpus(path).documents == [["outer"]]
    assert read_corpus(path, format="parquet").documents == [["outer"]]


def test_a_file_without_rows_has_no_documents(tmp_path):
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "x.parquet")
    assert read_corpus(tmp_path / "x.parquet").documents == []


@pytest.mark.parametrize(
    ("name", "data", "error", "message"),
    [
        (
            "x.parquet",
            parquet_bytes(id=[1], body=["a"]),
            UsageError,
            r"x.parquet: no column 'text'; it has 'id', 'body'",
        ),
        (
            "x.parquet",
            parquet_bytes(text=[1], body=["a"]),
            UsageError,
            "column 'text' holds int64, not text; columns of text: body ",
        ),
        ("x.parquet", b"PAR1 nonsense", InputError, "x.parquet: cannot be read as Parquet"),
        ("x.parquet", b"", InputError, "cannot be read as Parquet .*make or download it again"),
        ("x.parquet.gz", b"", UsageError, "needs random access, .* decompress the file"),
    ],
)
def test_files_without_usable_texts_are_refused_in_one_line(tmp_path, name, data, error, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(error, match=message) as raised:
        read_corpus(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_damage_inside_is_reported(tmp_path):
    data = bytearray(parquet_bytes(text=TEXTS))
    data[100:2000] = b"\xff" * 1900
    (tmp_path / "x.parquet").write_bytes(bytes(data))
    with pytest.raises(InputError, match="x.parquet: cannot be read as Parquet"):
        read_corpus(tmp_path / "x.parquet")


@pytest.mark.parametrize("is_dictionary", [True, False])
def test_long_values_that_many_rows_repeat_are_decoded_a_few_at_a_time(
    tmp_path, monkeypatch, is_dictionary
):
    monkeypatch.setattr(parquet, "_REPEATED_BYTES", 1 << 20)
    path = tmp_path / "x.parquet"
    column = pa.array(["x" * 300_000] * 200)
    column = column.dictionary_encode() if is_dictionary else column
    pq.write_table(pa.table({"text": column}), path, compression="gzip")
    assert path.stat().st_size < 20_000
    before = pa.total_allocated_bytes()
    config = build_section(VocabConfig, {"input": (str(path),), "output": "y"})
    reader = make_reader(str(path), config)
    (split,) = reader.splits(str(path), 1 << 20)
    rows = 0
    for block in reader.read_split(str(path), split, 1 << 20):
        rows += len(block.texts.starts)
        assert pa.total_allocated_bytes() - before < 16 << 20
    assert rows == 200

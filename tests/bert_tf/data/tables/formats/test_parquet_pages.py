"""How long values can be, by the bytes of pages; pyarrow writes them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.data.tables.formats.parquet import largest_repeated_value


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

"""Files of signatures, with which `duplicates_against` compares a corpus that was read before.

A file of signatures is a Parquet file with a row of about 1.1 KB, without text, for each different
document that a run kept. It has a row group for each partition of the keys, so that its bytes do
not depend on workers or blocks. It has minima rather than bands, so that it serves any
`near_duplicate_threshold`.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.errors import InputError
from bert_tf.base.files import replacing_file
from bert_tf.data.tables.formats.parquet import open_parquet
from pipeline.beam.storage import open_stored
from pipeline.beam.stored_path import path_of
from pipeline.corpus.duplicates.near_duplicates import NUM_HASHES, SKETCH
from pipeline.corpus.duplicates.occurrences import OCCURRENCE, NamedRows, first_of_runs
from pipeline.corpus.duplicates.signing import SIGNED_DOCUMENT

SIGNATURES_ENDING = ".signatures"
SIGNATURES_FILE = f"documents{SIGNATURES_ENDING}"
_PART = "corpus-signatures"
_MINIMA_BYTES = 4 * NUM_HASHES
_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("line", pa.int64()),
        ("identity", pa.uint64()),
        ("key", pa.uint64()),
        ("sketch", pa.binary(SKETCH.itemsize)),
        ("minima", pa.binary(_MINIMA_BYTES)),
    ],
    # Increase the version with every change of folding words or hashing grams.
    metadata={"bert-pipeline signatures": "1"},
)
# Hashes cannot be compressed.
_WRITING = {"compression": "none", "use_dictionary": ["source"], "write_statistics": False}


def part_name(partition: int) -> str:
    """Return the name of a partition's file in the shared folder of a job."""
    return f"{_PART}-{partition:05d}"


def signature_part(occurrences: NamedRows, signed: np.ndarray) -> bytes:
    """Return a file of the documents of a partition, by rising key.

    Args:
        occurrences: sorted by key, identity, file and place; the first of each key is taken.
        signed: SIGNED_DOCUMENT of the partition; documents without one are left out.
    """
    rows = occurrences.rows
    rows = rows[first_of_runs(rows["key"])]
    _, places, of_signed = np.intersect1d(rows["key"], signed["key"], return_indices=True)
    rows = rows[places]
    signed = signed[of_signed]
    files = np.array([source for source, _ in occurrences.names], object)
    columns = {
        "source": files[rows["block"]] if len(rows) else [],
        **{name: rows[name] for name in ("line", "identity", "key")},
        "sketch": _binary(signed["sketch"], SKETCH.itemsize),
        "minima": _binary(signed["minima"], _MINIMA_BYTES),
    }
    data = io.BytesIO()
    pq.write_table(pa.table(columns, schema=_SCHEMA), data, **_WRITING)
    return data.getvalue()


def write_signatures(folder: str, path: Path) -> int:
    """Join the files of all partitions; return the number of documents.

    Args:
        folder: shared by all workers.
        path: of the file to write.
    """
    documents = 0
    with (
        replacing_file(path) as aside,
        aside.open("wb") as stream,
        pq.ParquetWriter(stream, _SCHEMA, **_WRITING) as writer,
    ):
        for part in sorted(path_of(folder).glob(f"{_PART}-*")):
            table = pq.read_table(io.BytesIO(part.read_bytes()))
            if len(table):
                writer.write_table(table)
                documents += len(table)
    return documents


def count_groups(path: str) -> tuple[int, int]:
    """Return the numbers of row groups and of documents of a file of signatures.

    Raises:
        InputError: it is damaged, or no file of signatures of this version.
    """
    with open_parquet(path, open_stored) as (_, file):
        _check_schema(path, file)
        return file.num_row_groups, file.metadata.num_rows


def signed_sources(path: str) -> set[str]:
    """Return the corpus files of the documents of a file of signatures, as its run named them.

    Raises:
        InputError: see `count_groups`.
    """
    names: set[str] = set()
    with open_parquet(path, open_stored) as (_, file):
        _check_schema(path, file)
        for group in range(file.num_row_groups):
            sources = file.read_row_group(group, columns=["source"])["source"]
            names.update(sources.unique().to_pylist())
    return names


def _check_schema(path: str, file: pq.ParquetFile) -> None:
    if not file.schema_arrow.equals(_SCHEMA, check_metadata=True):
        raise InputError(
            f"{path}: does not hold signatures as this version of preprocess "
            "--write-signatures writes them; give the corpus itself, or write them again"
        )


def read_signatures(path: str, group: int) -> tuple[NamedRows, np.ndarray]:
    """Read a row group.

    Args:
        path: of a file of signatures.
        group: number of the row group.

    Returns:
        OCCURRENCE rows, whose names are (file, 0), and SIGNED_DOCUMENT [documents].
    """
    with open_parquet(path, open_stored) as (_, file):
        table = file.read_row_group(group)
    sources = table["source"].combine_chunks().dictionary_encode()
    rows = np.zeros(len(table), OCCURRENCE)
    signed = np.empty(len(table), SIGNED_DOCUMENT)
    for name in ("line", "identity", "key"):
        rows[name] = table[name].to_numpy()
    rows["block"] = sources.indices.to_numpy()
    signed["key"] = rows["key"]
    for name in ("sketch", "minima"):
        kind = SIGNED_DOCUMENT[name]
        signed[name] = _values(table[name], kind)
    return NamedRows([(source, 0) for source in sources.dictionary.to_pylist()], rows), signed


def _binary(values: np.ndarray, width: int) -> pa.Array:
    """Return records of a fixed width as binary values."""
    data = pa.py_buffer(np.ascontiguousarray(values).tobytes())
    return pa.Array.from_buffers(pa.binary(width), len(values), [None, data])


def _values(column: pa.ChunkedArray, kind: np.dtype) -> np.ndarray:
    """Return binary values as records of a dtype, [n]."""
    array = column.combine_chunks()
    data = array.buffers()[1].to_pybytes()[array.offset * kind.itemsize :]
    return np.frombuffer(data, kind, count=len(array))

"""Compressed files as the bytes they hold, for reading and writing."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import pyarrow as pa

from bert_tf.data.tables.file_names import compression_of


def uncompressed(stream: BinaryIO, path: str) -> BinaryIO:
    """The bytes of a file before compression; damage is an OSError while reading.

    Args:
        stream: the file as stored; not closed with the result.
        path: its name, which says how it is compressed.
    """
    compression = compression_of(path)
    if compression is None:
        return stream
    stored = pa.PythonFile(stream, mode="r")
    return cast(BinaryIO, pa.CompressedInputStream(stored, compression))


@contextmanager
def compressing(stream: BinaryIO, path: str) -> Iterator[BinaryIO]:
    """Compresses what is written, the same bytes for the same content.

    Args:
        stream: a new file; not closed at the end.
        path: the name it will have, which says how it is compressed.
    """
    match compression_of(path):
        case None:
            yield stream
        case "gzip":
            with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
                yield cast(BinaryIO, packed)
        case "bz2":
            with bz2.BZ2File(stream, "wb") as packed_blocks:
                yield cast(BinaryIO, packed_blocks)
        case compression:
            stored = pa.PythonFile(stream, mode="w")
            with pa.CompressedOutputStream(stored, compression) as packed_frames:
                yield cast(BinaryIO, packed_frames)

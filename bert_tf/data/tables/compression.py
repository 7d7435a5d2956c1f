"""Reading and writing compressed files."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import pyarrow as pa
import zstandard

from bert_tf.data.tables.dialect import compression_of

READ_AHEAD_BYTES = 1 << 16  # how much of a compressed file is read before it is used

# `zstd --long=31` refers back over 2 GiB, which are kept in memory; Arrow reads up to 128 MiB.
_LONGEST_ZSTD_WINDOW = 1 << 31


def _zstd_frame() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_LONGEST_ZSTD_WINDOW).decompressobj()


# What begins one of the members that follow one another in a file, the bytes to read of it at a
# time, as little data may unpack to much, and its first bytes.
_DECOMPRESSORS: dict[str, tuple[Callable[[], Any], int, bytes]] = {
    "gzip": (lambda: zlib.decompressobj(31), 1 << 14, b"\x1f\x8b"),
    "bz2": (bz2.BZ2Decompressor, 1 << 10, b"BZh"),
    "zstd": (_zstd_frame, 1 << 11, b"\x28\xb5\x2f\xfd"),
}


def uncompressed(stream: BinaryIO, path: str) -> BinaryIO:
    """Decompress a file by its name; damage is an OSError while reading. `stream` is not closed."""
    compression = compression_of(path)
    if compression is None:
        return stream
    return cast(BinaryIO, _Members(stream, *_DECOMPRESSORS[compression]))


class _Members(io.RawIOBase):
    """Decompressed members; zeros after one are padding, as of tapes."""

    def __init__(
        self, stream: BinaryIO, decompressor: Callable[[], Any], step_bytes: int, magic: bytes
    ):
        self._stream = stream
        self._begin = decompressor
        self._magic: bytes | None = magic  # None once there was a member
        self._step_bytes = step_bytes
        self._member: Any = None  # the one that is read; None between two
        self._stored = self._pending = memoryview(b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:  # RawIOBase's allocates `size` bytes for each part
        return self.readall() if size < 0 else bytes(self._next(size))

    def readinto(self, buffer: Any) -> int:
        part = self._next(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def _next(self, size: int) -> memoryview:
        while not self._pending and self._is_more_stored():
            self._pending = memoryview(self._decompress())
        part, self._pending = self._pending[:size], self._pending[size:]
        return part

    def _is_more_stored(self) -> bool:
        while not self._stored:
            data = self._stream.read(READ_AHEAD_BYTES)
            if not data:
                break
            self._stored = memoryview(data)
            if self._member is None:
                self._stored = memoryview(data.lstrip(b"\0"))
        if not self._stored and self._member is not None:
            raise OSError("the compressed data ends too early")
        return bool(self._stored)

    def _decompress(self) -> bytes:
        if self._member is None:
            self._member = self._begin()
        step = self._stored[: self._step_bytes]
        try:
            data: bytes = self._member.decompress(step)
        except (OSError, zlib.error, zstandard.ZstdError) as error:
            raise OSError(self._cause(step, str(error))) from None
        self._magic = None
        used = len(step)
        if self._member.eof:
            used -= len(self._member.unused_data)
            self._member = None
        self._stored = self._stored[used:]
        if self._member is None:
            self._stored = memoryview(bytes(self._stored).lstrip(b"\0"))
        return data

    def _cause(self, step: memoryview, said: str) -> str:
        if "ictionary" in said:
            return "it needs the dictionary it was compressed with: zstd -d -D DICTIONARY"
        if self._magic is None or bytes(step[:4]).startswith(self._magic):
            return said
        return "it is not compressed as its name says; name it by its content"


@contextmanager
def compressing(stream: BinaryIO, path: str) -> Iterator[BinaryIO]:
    """Compress writes, equal content to equal bytes; `stream` stays open."""
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

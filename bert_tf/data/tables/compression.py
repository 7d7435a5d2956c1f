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
# time, as little data may unpack to much, and its first bytes. The 40 bytes of a block of bzip2 may
# unpack to 45 MB, so that its parts have a limit of their own.
_DECOMPRESSORS: dict[str, tuple[Callable[[], Any], int, bytes]] = {
    "gzip": (lambda: zlib.decompressobj(31), 1 << 14, b"\x1f\x8b"),
    "bz2": (bz2.BZ2Decompressor, 1 << 10, b"BZh"),
    "zstd": (_zstd_frame, 1 << 11, b"\x28\xb5\x2f\xfd"),
}
_MOST_UNPACKED = 1 << 24


def uncompressed(stream: BinaryIO, path: str) -> BinaryIO:
    """Decompress a file by its name; damage is an OSError while reading. `stream` is not closed."""
    if (compression := compression_of(path)) is None:
        return stream
    return cast(BinaryIO, PartStream(part for _, part in unpack(stream, compression)))


class PartStream(io.RawIOBase):
    """A file of bytes that come in parts of any size, none of them empty."""

    def __init__(self, parts: Iterator[bytes]):
        self._parts = parts
        self._pending = memoryview(b"")
        self._fault: Exception | None = None  # a generator that raised would seem at its end

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:  # RawIOBase's allocates `size` bytes for each part
        return self.readall() if size < 0 else bytes(self._next(size))

    def readinto(self, buffer: Any) -> int:
        part = self._next(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def _next(self, size: int) -> memoryview:
        if self._fault is not None:
            raise self._fault
        try:
            pending = self._pending or memoryview(next(self._parts, b""))
        except Exception as error:
            self._fault = error
            raise
        self._pending = pending[size:]
        return pending[:size]


def unpack(stream: BinaryIO, compression: str, place: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield where each member begins, from the `place` of the stream on, and its parts in turn."""
    begin, step_bytes, magic = _DECOMPRESSORS[compression]
    member: Any = None  # the one that is read; None between two
    start, is_first = place, True
    while data := stream.read(READ_AHEAD_BYTES):
        stored = memoryview(data)
        place += len(data)
        while stored:
            if member is None:
                stored = memoryview(bytes(stored).lstrip(b"\0"))
                if not stored:
                    break
                member, start = begin(), place - len(stored)
            step = stored[:step_bytes]
            try:
                yield from ((start, part) for part in _parts(member, step))
            except (OSError, zlib.error, zstandard.ZstdError) as error:
                if "ictionary" in str(error):
                    said = "it needs the dictionary it was compressed with: zstd -d -D DICTIONARY"
                elif is_first and not bytes(step[:4]).startswith(magic):
                    said = "its content does not match its extension; rename it"
                else:
                    said = str(error)
                raise OSError(said) from None
            is_first = False
            stored = stored[len(step) - (len(member.unused_data) if member.eof else 0) :]
            member = None if member.eof else member
    if member is not None:
        raise OSError("the compressed data ends too early")


def _parts(member: Any, step: memoryview) -> Iterator[bytes]:
    if not isinstance(member, bz2.BZ2Decompressor):
        if part := member.decompress(step):
            yield part
        return
    while part := member.decompress(step, _MOST_UNPACKED):
        yield part
        if member.eof or member.needs_input:
            return
        step = step[:0]


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

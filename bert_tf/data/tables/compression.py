"""Reading and writing compressed files.

A decompressor gets a few kilobytes at a time, because little data may unpack to much; so a bomb
takes a bounded amount of memory. A file may have several members one after another, as `cat a.gz
b.gz` makes it, and zeros between them.
"""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import zstandard

from bert_tf.data.tables.dialect import compression_of

READ_AHEAD_BYTES = 1 << 16  # of a compressed file, read before they are unpacked

# `zstd --long=31` refers back over 2 GiB, which are kept in memory; Arrow reads up to 128 MiB.
_LONGEST_ZSTD_WINDOW = 1 << 31


def _zstd_frame() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_LONGEST_ZSTD_WINDOW).decompressobj()


class _Decompressor(NamedTuple):
    """How the members of a compressed file are unpacked.

    Attributes:
        begin: makes the object that unpacks one member.
        step_bytes: bytes to unpack at a time, few because little data may unpack to much.
        magic: the first bytes of a member.
    """

    begin: Callable[[], Any]
    step_bytes: int
    magic: bytes


_ZLIB_WITH_GZIP_HEADER = 31  # `wbits` of zlib: 16 for the header, and the largest window
_DECOMPRESSORS = {
    "gzip": _Decompressor(lambda: zlib.decompressobj(_ZLIB_WITH_GZIP_HEADER), 1 << 14, b"\x1f\x8b"),
    "bz2": _Decompressor(bz2.BZ2Decompressor, 1 << 10, b"BZh"),
    "zstd": _Decompressor(_zstd_frame, 1 << 11, b"\x28\xb5\x2f\xfd"),
}
# The 40 bytes of a block of bzip2 may unpack to 45 MB, so it is unpacked by parts of at most so
# many bytes.
_MOST_UNPACKED = 1 << 24


def compression_by_content(first: bytes) -> str | None:
    """Return the compression of a file by its first bytes: `gzip`, `bz2`, `zstd` or None."""
    for compression, decompressor in _DECOMPRESSORS.items():
        if first.startswith(decompressor.magic):
            return compression
    return None


def uncompressed(stream: BinaryIO, path: str) -> BinaryIO:
    """Decompress a file by its name.

    Args:
        stream: the file as it is stored; not closed with the result.
        path: name that says how it is compressed.

    Returns:
        `stream` itself if it is not compressed. Damage is an OSError while reading.
    """
    if (compression := compression_of(path)) is None:
        return stream
    return cast(BinaryIO, PartStream(part for _, part in unpack(stream, compression)))


class PartStream(io.RawIOBase):
    """A file of bytes that come in parts of any size, none of them empty.

    An error of the parts is raised again by each later read, because a generator that has raised
    looks as if it had ended, and a damaged file as if it were whole.
    """

    def __init__(self, parts: Iterator[bytes]):
        self._parts = parts
        self._pending = memoryview(b"")
        self._fault: Exception | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:  # RawIOBase's allocates `size` bytes for each part
        """Return at most so many bytes, all that are left for a negative `size`."""
        return self.readall() if size < 0 else bytes(self._next(size))

    def readinto(self, buffer: Any) -> int:
        """Copy the next bytes into a buffer and return how many there were, 0 at the end."""
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
    """Decompress the members of a file one after another.

    Args:
        stream: the file as it is stored.
        compression: `gzip`, `bz2` or `zstd`.
        place: byte of the file at which `stream` is.

    Yields:
        The byte of the file where a member begins, and the next bytes of its content.

    Raises:
        OSError: the data is damaged, ends too early, is compressed otherwise, or needs a
            dictionary.
    """
    decompressor = _DECOMPRESSORS[compression]
    member: Any = None  # the one that is unpacked; None between two
    start = place
    is_first = True
    while data := stream.read(READ_AHEAD_BYTES):
        stored = memoryview(data)
        place += len(data)
        while stored:
            if member is None:
                stored = memoryview(bytes(stored).lstrip(b"\0"))
                if not stored:
                    break
                member = decompressor.begin()
                start = place - len(stored)
            step = stored[: decompressor.step_bytes]
            try:
                yield from ((start, part) for part in _parts(member, step))
            except (OSError, zlib.error, zstandard.ZstdError) as error:
                if "dictionary" in str(error).lower():
                    reason = "it needs the dictionary it was compressed with: zstd -d -D DICTIONARY"
                elif is_first and not bytes(step).startswith(decompressor.magic):
                    reason = "its content does not match its extension; rename it"
                else:
                    reason = str(error)
                raise OSError(reason) from None
            is_first = False
            used = len(step)
            if member.eof:
                used -= len(member.unused_data)
                member = None
            stored = stored[used:]
    if member is not None:
        raise OSError("the compressed data ends too early")


def _parts(member: Any, step: memoryview) -> Iterator[bytes]:
    """Yield the content of a part of the file, of bzip2 at most _MOST_UNPACKED at once."""
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
    """Compress written bytes; equal content gives equal files.

    Args:
        stream: a new file; stays open.
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

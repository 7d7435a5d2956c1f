"""Reads `.warc.gz` and `.warc.zst` files from any of their records on.

Records are gzip members or frames of Zstandard. Reading of `.warc.gz` files continues after damage.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from bert_tf.data.tables.compression import READ_AHEAD_BYTES, PartStream, unpack
from pipeline.beam.files import damaged

SIGNATURE = b"WARC/"
_MAGIC = b"\x1f\x8b\x08"
# Stored bytes that are unpacked at a time, from the beginning of a member on: the place where
# damage shows must not depend on the split that is read.
_STEP_BYTES = 1 << 14
_GZIP_FORMAT = 31  # of zlib's `wbits`: a window of 32 KiB, with gzip's header
_TOO_EARLY = "the compressed data ends too early"
_NO_DATA = "no data follows its header"
DAMAGE = re.compile(rb"[\n\0]Damaged: (.{1,200})\r\n\r\n")


def unpack_members(stream: BinaryIO, path: str) -> BinaryIO:
    """Return a stream of the uncompressed bytes of all members of a gzip file.

    Args:
        stream: the compressed file.
        path: its name, for messages.
    """
    return cast(BinaryIO, PartStream(part for _, part in read_members(stream, path)))


def read_members(stream: BinaryIO, path: str, *, first_bit: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield each member's first bit, from `first_bit` on, and its bytes in parts.

    After a damaged member, reading continues at the next one that begins a record. The bytes then
    have a mark with the place of the damage, which DAMAGE matches. It is a record without a length
    or, if a part of the member was read, it follows this part, whose record is then longer than its
    header says.

    Args:
        stream: the stored file.
        path: not used; see `BlockReader`.
        first_bit: where the first member begins.

    Raises:
        OSError: the file is not compressed.
    """
    del path
    stream.seek(first_bit // 8)
    start = first_bit // 8  # byte of the file where the member begins
    place = start  # byte of the file where `stored` begins
    stored = b""  # bytes that are not unpacked
    member = zlib.decompressobj(_GZIP_FORMAT)
    size = 0  # unpacked bytes of the member
    while stored := _filled(stored, stream):
        if place == 0 and not stored.startswith(_MAGIC[:2]):
            raise OSError("its content does not match its extension; rename it")
        if place == start:  # zeros between members are padding
            unpadded = stored.lstrip(b"\0")
            start += len(stored) - len(unpadded)
            place = start
            stored = unpadded
        step = stored[:_STEP_BYTES]
        try:
            part = member.decompress(step)
            if step and not part and place == start and not member.eof:
                # A damaged header may claim a field that the next members would be a part of.
                raise zlib.error(_NO_DATA)
        except zlib.error as error:
            yield 8 * start, _damage(start, str(error), size)
            skipped, stored = _skip_to_member(stream, stored, int(place == start))
            place += skipped
            start = place
            size = 0
            member = zlib.decompressobj(_GZIP_FORMAT)
            continue
        if part:
            yield 8 * start, part
        used = len(step) - len(member.unused_data)
        stored = stored[used:]
        place += used
        size += len(part)
        if member.eof:
            start = place
            size = 0
            member = zlib.decompressobj(_GZIP_FORMAT)
    if place > start:
        yield 8 * start, _damage(start, _TOO_EARLY, size)


def read_frames(stream: BinaryIO, path: str, *, first_bit: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield each frame's first bit, from `first_bit` on, and its parts; InputError if damaged."""
    stream.seek(first_bit // 8)
    try:
        for start, part in unpack(stream, "zstd", first_bit // 8):
            yield 8 * start, part
    except OSError as error:
        raise damaged(path, str(error)) from None


def _damage(start: int, fault: str, size: int) -> bytes:
    """Return the mark of damage in a member, of which `size` bytes were unpacked."""
    before = b"\0" if size else SIGNATURE + b"1.0\r\n"
    return before + f"Damaged: gzip member at byte {start:,} of the file ({fault})\r\n\r\n".encode()


def _filled(stored: bytes, stream: BinaryIO) -> bytes:
    """Return the bytes with as many more of the stream as a step needs; empty at its end."""
    while len(stored) < _STEP_BYTES:
        more = stream.read(READ_AHEAD_BYTES)
        if not more:
            break
        stored += more
    return stored


def _skip_to_member(stream: BinaryIO, stored: bytes, after: int) -> tuple[int, bytes]:
    """Find the next member that begins a record.

    Args:
        stream: the stored file, from the end of `stored` on.
        stored: bytes that are not unpacked.
        after: the first byte of them where the member may begin.

    Returns:
        The number of bytes before the member, and the stored bytes from there on.
    """
    skipped = 0
    while True:
        place = stored.find(_MAGIC, after)
        while place >= 0:
            head = stored[place : place + _STEP_BYTES]
            try:
                member = zlib.decompressobj(_GZIP_FORMAT)
                if member.decompress(head, len(SIGNATURE)) == SIGNATURE:
                    return skipped + place, stored[place:]
            except zlib.error:
                pass
            place = stored.find(_MAGIC, place + 1)
        more = stream.read(READ_AHEAD_BYTES)
        if not more:
            return skipped + len(stored), b""
        done = max(len(stored) - _STEP_BYTES, after)
        skipped += done
        stored = stored[done:] + more
        after = 0

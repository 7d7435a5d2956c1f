"""Reads `.warc.gz` and `.warc.zst` files, whose records are gzip members or frames of Zstandard,
from any of these on; `.warc.gz` files also past damage."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from bert_tf.data.tables.compression import READ_AHEAD_BYTES, PartStream, unpack
from pipeline.beam.files import damaged

SIGNATURE = b"WARC/"
_MAGIC = b"\x1f\x8b\x08"
# Stored bytes at a time, from the beginning of a member on: where damage shows must not depend on
# how a file is read.
_STEP_BYTES = 1 << 14
_TOO_EARLY = "the compressed data ends too early"
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

    After a damaged member, reading continues at the next one that begins a record. DAMAGE tells
    where it was: as a record without a length, or behind what was read of its record, which is
    then longer than it says. Raises OSError if the file is not compressed.
    """
    del path
    stream.seek(first_bit // 8)
    start = place = first_bit // 8  # of the member; of the bytes that are not unpacked
    stored = b""
    member = zlib.decompressobj(31)
    size = 0  # unpacked bytes of the member
    while stored := _filled(stored, stream):
        if place == 0 and not stored.startswith(_MAGIC[:2]):
            raise OSError("its content does not match its extension; rename it")
        if place == start:  # zeros are padding
            start = place = place + len(stored) - len(stored.lstrip(b"\0"))
            stored = stored.lstrip(b"\0")
        step = stored[:_STEP_BYTES]
        try:
            part = member.decompress(step)
        except zlib.error as error:
            yield 8 * start, _damage(start, str(error), size)
            skipped, stored = _skip_to_member(stream, stored, int(place == start))
            start = place = place + skipped
            size = 0
            member = zlib.decompressobj(31)
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
            member = zlib.decompressobj(31)
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
    before = b"\0" if size else SIGNATURE + b"1.0\r\n"
    return before + f"Damaged: gzip member at byte {start:,} of the file ({fault})\r\n\r\n".encode()


def _filled(stored: bytes, stream: BinaryIO) -> bytes:
    while len(stored) < _STEP_BYTES:
        more = stream.read(READ_AHEAD_BYTES)
        if not more:
            break
        stored += more
    return stored


def _skip_to_member(stream: BinaryIO, stored: bytes, after: int) -> tuple[int, bytes]:
    """Return the number of bytes before the next member, and what is read from there on."""
    skipped = 0
    while True:
        place = stored.find(_MAGIC, after)
        while place >= 0:
            head = stored[place : place + _STEP_BYTES]
            try:
                if zlib.decompressobj(31).decompress(head, len(SIGNATURE)) == SIGNATURE:
                    return skipped + place, stored[place:]
            except zlib.error:
                pass
            place = stored.find(_MAGIC, place + 1)
        if not (more := stream.read(READ_AHEAD_BYTES)):
            return skipped + len(stored), b""
        done = max(len(stored) - _STEP_BYTES, after)
        skipped += done
        stored = stored[done:] + more
        after = 0

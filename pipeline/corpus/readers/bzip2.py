"""Reads bzip2 files from any of their blocks on, so that several workers can share one file.

https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf describes the format.
"""

from __future__ import annotations

import bisect
import bz2
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from bert_tf.base.compiled import numba
from pipeline.beam.files import damaged

_BLOCK_MARK = 0x314159265359
_END_MARK = 0x177245385090
_MARK_BITS = 48
# Bits. Two equal marks can overlap, since their last three bits equal their first three, but no two
# begin nearer to each other than this.
_LEAST_MARK_DISTANCE = 45
_CHECKSUM_BITS = 32
_CHUNK_BYTES = 1 << 22  # read at a time


def read_blocks(stream: BinaryIO, path: str, *, first_bit: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the first bit of each block, and its bytes.

    Args:
        stream: the stored file.
        path: its name, for messages.
        first_bit: blocks before it are skipped.

    Raises:
        InputError: the file is damaged.
    """
    if first_bit == 0:
        stream.seek(0)
        if stream.read(3) != b"BZh":
            raise damaged(path, "it does not begin as a bzip2 file")
    origin = first_bit // 8
    stream.seek(origin)
    kept = b""  # stored bytes from `origin` on
    block: int | None = None  # first bit of the block that the next mark ends
    failed: int | None = None  # first bit of a block that could not be decompressed so far
    has_ended = False
    for mark, is_end, chunk in _find_marks(stream, origin):
        kept += chunk
        if mark < first_bit:
            continue
        if block is not None:
            data = _decompress(kept, block - 8 * origin, mark - 8 * origin)
            if data is None:
                if failed == block:
                    raise damaged(path, f"bad block at byte {block // 8}")
                failed = block  # the mark may be inside the block by chance: try up to the next
                continue
            yield block, data
        block = None if is_end else mark
        has_ended = is_end
        done = mark // 8 - origin
        kept = kept[done:]
        origin += done
    if block is not None or not has_ended:
        raise damaged(path, "it is cut short")


class BlockStream:
    """The uncompressed bytes of some blocks, and their places in the file."""

    def __init__(self, blocks: Iterator[tuple[int, bytes]]):
        self._blocks = blocks
        self._pending = b""
        self._read = 0
        self._offsets: list[int] = []
        self._bits: list[int] = []

    def read(self, size: int) -> bytes:
        parts = [self._pending]
        missing = size - len(self._pending)
        while missing > 0:
            bit, data = next(self._blocks, (0, b""))
            if not data:
                break
            if self._bits[-1:] != [bit]:  # otherwise it is another part of the block
                self._offsets.append(self._read)
                self._bits.append(bit)
            self._read += len(data)
            parts.append(data)
            missing -= len(data)
        joined = b"".join(parts)
        self._pending = joined[size:]
        return joined[:size]

    def block_of(self, offset: int) -> tuple[int, int]:
        """Return the bit in the file, and the offset, of the block that a byte was read from."""
        place = bisect.bisect_right(self._offsets, offset) - 1
        return self._bits[place], self._offsets[place]


def _find_marks(stream: BinaryIO, origin: int) -> Iterator[tuple[int, bool, bytes]]:
    """Yield each mark's first bit, whether it is an end mark, and the bytes read since the last.

    The bytes reach to the end of the chunk that holds the mark, and may hold further marks.
    """
    window = 0
    unseen = b""
    while chunk := stream.read(_CHUNK_BYTES):
        size = len(chunk)
        bits, are_ends, window = _scan(np.frombuffer(chunk, np.uint8), np.uint64(window))
        for bit, is_end in zip(bits.tolist(), are_ends.tolist(), strict=True):
            yield 8 * origin + bit, is_end, unseen + chunk
            unseen = b""
            chunk = b""
        unseen += chunk
        origin += size


@numba.njit(cache=True, nogil=True)
def _scan(data, window):
    """Find the marks in bytes, which may begin at any bit.

    Args:
        data: uint8, the next bytes of the file.
        window: uint64, the eight bytes before, which may hold the beginning of a mark.

    Returns:
        Bits where marks begin, int64 (negative before `data`), whether each is an end mark, and the
        window for the next call.
    """
    capacity = 8 * len(data) // _LEAST_MARK_DISTANCE + 2
    bits = np.empty(capacity, np.int64)
    are_ends = np.empty(capacity, np.bool_)
    marks = 0
    mask = (np.uint64(1) << np.uint64(_MARK_BITS)) - np.uint64(1)
    for place in range(len(data)):
        window = (window << np.uint64(8)) | np.uint64(data[place])
        for spare in range(7, -1, -1):
            mark = (window >> np.uint64(spare)) & mask
            if mark == np.uint64(_BLOCK_MARK) or mark == np.uint64(_END_MARK):
                bits[marks] = 8 * (place + 1) - spare - _MARK_BITS
                are_ends[marks] = mark == np.uint64(_END_MARK)
                marks += 1
    return bits[:marks], are_ends[:marks], window


def _decompress(data: bytes, start: int, stop: int) -> bytes | None:
    """Decompress a block, from bit `start` to `stop`; return None if it is damaged.

    The block becomes a file of its own: it is moved to a whole byte, between a header and an end
    mark with the block's checksum, which is also that of a file of a single block.
    """
    last = -(-stop // 8)
    block = int.from_bytes(data[start // 8 : last], "big") >> (8 * last - stop)
    length = stop - start
    block &= (1 << length) - 1
    end_bits = _MARK_BITS + _CHECKSUM_BITS
    checksum = block >> max(length - end_bits, 0) & ((1 << _CHECKSUM_BITS) - 1)
    padding = -(length + end_bits) % 8
    whole = ((block << end_bits) | (_END_MARK << _CHECKSUM_BITS) | checksum) << padding
    file = b"BZh9" + whole.to_bytes((length + end_bits + padding) // 8, "big")
    decompressor = bz2.BZ2Decompressor()
    try:
        content = decompressor.decompress(file)
    except OSError:
        return None
    return content if decompressor.eof else None

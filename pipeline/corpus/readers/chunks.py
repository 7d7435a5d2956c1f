"""Cuts a file's bytes at the borders of its documents, without understanding more than those."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Protocol

from bert_tf.base.errors import InputError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ByteStream(Protocol):
    """The uncompressed bytes of a file, from its beginning on."""

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end of the file."""


# Given a file's bytes from some border on, the offset of the last border in them, 0 if none.
FindLastBorder = Callable[[bytes], int]
# Given some bytes and an offset, the line ends before it.
CountLines = Callable[[bytes, int], int]


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Whole documents of a file.

    Attributes:
        index: number of the chunk in the file, from 0.
        offset: where its bytes begin in the uncompressed file.
        first_line: number of its first line, from 1.
        data: its bytes, without the file's byte-order mark.
    """

    index: int
    offset: int
    first_line: int
    data: bytes


def cut_chunks(
    stream: ByteStream,
    path: str,
    *,
    chunk_bytes: int,
    largest_document: int,
    find_last_border: FindLastBorder,
    count_lines: CountLines,
) -> Iterator[Chunk]:
    """Yields the file in chunks of about `chunk_bytes`, cut at the last border within them.

    A document larger than that becomes a larger chunk. The cuts depend on the content alone.

    Args:
        stream: the uncompressed bytes.
        path: named in errors.
        chunk_bytes: bytes read before a border is looked for.
        largest_document: bytes, beyond which no border is waited for.
        find_last_border: offset of the last border in some bytes, 0 if there is none.
        count_lines: line ends in some bytes, up to an offset.

    Raises:
        InputError: the file is damaged, or no border comes for `largest_document`.
    """
    index, line = 0, 1
    pending = stream.read(max(chunk_bytes, len(BYTE_ORDER_MARK)))
    offset = len(BYTE_ORDER_MARK) if pending.startswith(BYTE_ORDER_MARK) else 0
    pending = pending[offset:]
    target = chunk_bytes
    while True:
        more = stream.read(max(target - len(pending), 1))
        pending += more
        border = find_last_border(pending) if more else len(pending)
        if border:
            yield Chunk(index, offset, line, pending[:border])
            line += count_lines(pending, border)
            index, offset = index + 1, offset + border
            pending = pending[border:]
            target = chunk_bytes
        elif len(pending) > largest_document:
            raise InputError(
                f"{path}:{line}: a document of more than {largest_document / 1e6:g} MB begins "
                "here; separate the documents of the file, check its layout, or raise "
                "max_document_megabytes"
            )
        else:
            target = min(2 * len(pending), max(largest_document + 1, len(pending)))
        if not more:
            return

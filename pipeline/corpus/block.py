"""What the readers yield: whole documents as flat arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentBlock:
    """Whole documents of one file, about `block_megabytes` of its text.

    Attributes:
        source: path of the file.
        index: number of the block in its file, from 0.
        sentences: UTF-8 sentences of all documents one after the other, none empty.
        document_offsets: int64 [documents + 1]; document d has the sentences from
            `document_offsets[d]` up to `document_offsets[d + 1]`, at least one.
        rejects: what could not be read, a mapping each: `source`, `line` (from 1, in the
            uncompressed file), `reason` (one of few, for counting) and `detail` where there is
            more to say.
        dropped: number of documents left out on purpose, by reason.
    """

    source: str
    index: int
    sentences: pa.Array
    document_offsets: np.ndarray
    rejects: list[dict[str, Any]]
    dropped: dict[str, int]

    @property
    def num_documents(self) -> int:
        """Documents in the block."""
        return len(self.document_offsets) - 1

    @property
    def num_bytes(self) -> int:
        """UTF-8 bytes of all sentences."""
        offsets, _ = offsets_and_data(self.sentences)
        return int(offsets[-1] - offsets[0])


def offsets_and_data(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The buffers of an Arrow string array without its null mask: offsets (int32 [texts + 1]) and
    the bytes they point into (uint8), neither to be written to."""
    if not len(texts):
        return np.zeros(1, np.int32), np.frombuffer(b"", np.uint8)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return offsets[texts.offset : texts.offset + len(texts) + 1], data

"""Whole documents as flat arrays, and their identity: a hash of only the text."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.base.kernels import GOLDEN_RATIO, fnv1a, mix64
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.packing import unpack
from pipeline.corpus.evidence import Dropped, Evidence, Sample, SharedText, join_evidence

_MIX = np.uint64(0xD6E8FEB86659FD93)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentBlock:
    """Whole documents, about `block_megabytes` of text from one file or many small ones."""

    source: str  # path of the file, or of the first
    index: int  # number of the block in its file, ascending
    sentences: pa.Array  # UTF-8 sentences of all documents one after the other, none empty
    # int64 [documents + 1] into the sentences; each document has at least one.
    document_offsets: np.ndarray
    # int64 [lines + 1] into the sentences; a line is a paragraph of its document and has at
    # least one.
    line_offsets: np.ndarray
    # int64 [documents], the line of the file where each document begins, from 1.
    document_lines: np.ndarray
    evidence: Evidence = dataclasses.field(default_factory=Evidence)

    @property
    def num_documents(self) -> int:
        return len(self.document_offsets) - 1

    @property
    def num_lines(self) -> int:
        return len(self.line_offsets) - 1

    @property
    def lines_of_documents(self) -> np.ndarray:
        """int64 [documents + 1], offsets into the lines."""
        return np.searchsorted(self.line_offsets, self.document_offsets)

    def drop_lines(self, is_dropped: np.ndarray, reason: str, empty_reason: str) -> DocumentBlock:
        """Drop some lines, and documents that have no others.

        Args:
            is_dropped: bool [lines].
            reason: why lines are dropped.
            empty_reason: why documents without other lines are dropped.
        """
        is_empty = np.diff(offsets_of(~is_dropped)[self.lines_of_documents]) == 0
        block = self.adding(Evidence(dropped_lines={reason: int(is_dropped.sum())}))
        return block._noting(is_empty, empty_reason)._with_lines(~is_dropped)

    def drop_documents(
        self, is_dropped: np.ndarray, reason: str, values: np.ndarray | None = None
    ) -> DocumentBlock:
        """Drop some documents.

        Args:
            is_dropped: bool [documents].
            reason: why they are dropped.
            values: float [documents], measurements of all documents; None without any.
        """
        return self._noting(is_dropped, reason, values).keep_documents(~is_dropped)

    def keep_documents(self, kept: np.ndarray) -> DocumentBlock:
        """Keep some documents, bool [documents]; the caller counts the others."""
        if kept.all():
            return self
        return self._with_lines(np.repeat(kept, np.diff(self.lines_of_documents)))

    def _noting(
        self, is_dropped: np.ndarray, reason: str, values: np.ndarray | None = None
    ) -> DocumentBlock:
        lines = self.document_lines[is_dropped]
        values = None if values is None else values[is_dropped]
        return self.adding(Evidence.of_dropped(self.source, lines, reason, values))

    def adding(self, evidence: Evidence) -> DocumentBlock:
        return dataclasses.replace(self, evidence=self.evidence + evidence)

    def _with_lines(self, kept: np.ndarray) -> DocumentBlock:
        """Keep some lines, bool [lines], and the documents of these."""
        counts = np.diff(self.line_offsets)
        in_kept_line = np.repeat(kept, counts)
        sentences_before = offsets_of(in_kept_line)
        has_lines = np.diff(offsets_of(kept)[self.lines_of_documents]) > 0
        bounds = sentences_before[self.document_offsets]
        return dataclasses.replace(
            self,
            sentences=self.sentences.filter(pa.array(in_kept_line)),
            document_offsets=np.concatenate([bounds[:1], bounds[1:][has_lines]]),
            line_offsets=offsets_of(counts[kept]),
            document_lines=self.document_lines[has_lines],
        )

    @property
    def num_bytes(self) -> int:
        offsets, _ = offsets_and_data(self.sentences)
        return int(offsets[-1] - offsets[0])


def read_block(data: bytes) -> DocumentBlock:
    """Read a block from the bytes of `DocumentBlock`'s coder."""
    block: DocumentBlock = unpack(
        data, DocumentBlock, Reject, Evidence, Dropped, Sample, SharedText
    )
    return block


def join_blocks(blocks: list[DocumentBlock]) -> DocumentBlock:
    """Join blocks; the file of each document is lost."""
    if len(blocks) == 1:
        return blocks[0]

    def joined(of_block: Callable[[DocumentBlock], np.ndarray]) -> np.ndarray:
        return offsets_of(np.concatenate([np.diff(of_block(block)) for block in blocks]))

    return DocumentBlock(
        source=blocks[0].source,
        index=blocks[0].index,
        sentences=pa.concat_arrays([block.sentences for block in blocks]),
        document_offsets=joined(lambda block: block.document_offsets),
        line_offsets=joined(lambda block: block.line_offsets),
        document_lines=np.concatenate([block.document_lines for block in blocks]),
        evidence=join_evidence(block.evidence for block in blocks),
    )


def offsets_and_data(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return views of an Arrow string array: offsets (int32 [texts + 1]) and bytes (uint8)."""
    if not len(texts):
        return np.zeros(1, np.int32), np.frombuffer(b"", np.uint8)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return offsets[texts.offset : texts.offset + len(texts) + 1], data


def document_hashes(block: DocumentBlock) -> np.ndarray:
    """Return a hash of each document's sentences and their borders, uint64 [documents].

    These hashes must not change: held-out documents and the random choices of later jobs depend on
    them.
    """
    offsets, data = offsets_and_data(block.sentences)
    return _hash(data, offsets, block.document_offsets)


def block_identity(block: DocumentBlock) -> str:
    """Return a name for a block that depends on its place and on its texts, 32 hexadecimal digits.

    Files of finished blocks have these names, so that a resumed job finds the blocks that it need
    not make again.
    """
    digest = hashlib.sha256(
        f"{block.source}\0{block.index}\0{len(block.evidence.rejects)}\0".encode()
    )
    digest.update(document_hashes(block).tobytes())
    return digest.hexdigest()[:32]


@numba.njit(cache=True, nogil=True)
def _hash(data, offsets, document_offsets):
    """Hash documents; see `document_hashes`.

    The length of each sentence is mixed in, then its bytes in words of eight.
    """
    hashes = np.empty(len(document_offsets) - 1, np.uint64)
    for document in range(len(hashes)):
        value = GOLDEN_RATIO
        for sentence in range(document_offsets[document], document_offsets[document + 1]):
            position, stop = offsets[sentence], offsets[sentence + 1]
            value = (value ^ np.uint64(stop - position)) * _MIX
            while position < stop:
                word = np.uint64(0)
                for byte in range(position, min(position + 8, stop)):
                    word = word << np.uint64(8) | np.uint64(data[byte])
                value = (value ^ word) * GOLDEN_RATIO
                value ^= value >> np.uint64(32)
                position += 8
        hashes[document] = mix64(value)
    return hashes


@numba.njit(cache=True, nogil=True)
def hash_ranges(data, starts, stops):
    """Return FNV-1a hashes of ranges of bytes, uint64 [ranges]."""
    hashes = np.empty(len(starts), np.uint64)
    for place in range(len(starts)):
        hashes[place] = fnv1a(data, starts[place], stops[place])
    return hashes

"""The identity of a document, independent of file, place and order: a hash of its text."""

from __future__ import annotations

import hashlib

import numba
import numpy as np

from bert_tf.base.kernels import GOLDEN_RATIO, mix64
from pipeline.corpus.blocks.document_block import DocumentBlock, offsets_and_data

_MIX = np.uint64(0xD6E8FEB86659FD93)


def document_hashes(block: DocumentBlock) -> np.ndarray:
    """uint64 [documents]: a hash of each document's sentences and the borders between them.

    Equal documents have equal hashes. The function must not change: held-out documents and the
    random choices of later jobs depend on it.
    """
    offsets, data = offsets_and_data(block.sentences)
    hashes = np.empty(block.num_documents, np.uint64)
    _hash(data, offsets, block.document_offsets, hashes)
    return hashes


def block_identity(block: DocumentBlock) -> str:
    """Hexadecimal digits that identify a block by its source and its content."""
    digest = hashlib.sha256(f"{block.source}\0{block.index}\0{len(block.rejects)}\0".encode())
    digest.update(document_hashes(block).tobytes())
    return digest.hexdigest()[:32]


@numba.njit(cache=True, nogil=True)
def _hash(data, offsets, document_offsets, hashes):
    """Multiplies in 8 bytes at a time and finishes as splitmix64 does."""
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

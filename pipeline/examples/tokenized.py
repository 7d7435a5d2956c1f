"""Tokenized documents with their hashes: made from blocks, partitioned, packed and unpacked."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.base.processor import map_ahead
from bert_tf.data.examples.flat_documents import FlatDocuments, concatenate_documents
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from pipeline.corpus.document_block import DocumentBlock, document_hashes

_BATCH_SENTENCES = 4096  # tokenized at a time
_HEAD_BYTES = 32  # of packed documents: four sizes of 8 bytes


@dataclasses.dataclass(frozen=True)
class TokenizedDocuments:
    """Documents and the hash of each one's text, uint64 [documents]."""

    documents: FlatDocuments
    hashes: np.ndarray

    def __len__(self) -> int:
        return len(self.hashes)

    def select(self, numbers: np.ndarray) -> TokenizedDocuments:
        return TokenizedDocuments(self.documents.select(numbers), self.hashes[numbers])


def tokenize_block(
    block: DocumentBlock, tokenizer: WordPieceTokenizer
) -> tuple[TokenizedDocuments, int]:
    """Tokenize the sentences of a block.

    Returns:
        The documents that have tokens, and the number of those without.
    """

    def tokenize_from(start: int) -> tuple[np.ndarray, np.ndarray]:
        batch = block.sentences[start : start + _BATCH_SENTENCES]
        ids = tokenizer.tokenize(tf.constant(batch.to_numpy(zero_copy_only=False), tf.string))
        return ids.flat_values.numpy(), ids.row_lengths().numpy()

    tokens = [np.empty(0, np.int32)]
    lengths = [np.empty(0, np.int64)]
    starts = range(0, len(block.sentences), _BATCH_SENTENCES)
    for batch_tokens, batch_lengths in map_ahead(tokenize_from, starts):
        tokens.append(batch_tokens)
        lengths.append(batch_lengths)
    documents = FlatDocuments(
        np.concatenate(tokens), offsets_of(np.concatenate(lengths)), block.document_offsets
    ).without_empty_sentences()
    tokenized = TokenizedDocuments(documents, document_hashes(block))
    has_tokens = np.diff(documents.document_offsets) > 0
    if has_tokens.all():
        return tokenized, 0
    return tokenized.select(np.flatnonzero(has_tokens)), int((~has_tokens).sum())


def count_lengths(documents: FlatDocuments) -> dict[str, int]:
    """Count documents by tokens in powers of two: `document_tokens/64` for 64 to 127."""
    bounds = documents.sentence_offsets[documents.document_offsets]
    # A number of n bits has the exponent n: it is at least 2^(n - 1).
    _, exponents_of_documents = np.frexp(np.diff(bounds))
    exponents, counts = np.unique(exponents_of_documents, return_counts=True)
    ranges = zip(exponents.tolist(), counts.tolist(), strict=True)
    return {f"document_tokens/{2 ** (exponent - 1)}": count for exponent, count in ranges}


def partition_documents(
    tokenized: TokenizedDocuments, groups: np.ndarray
) -> list[tuple[int, TokenizedDocuments]]:
    """Split documents by their groups; groups without any are left out.

    Args:
        tokenized: the documents.
        groups: int64 [documents].
    """
    order = np.argsort(groups, kind="stable")
    numbers, counts = np.unique(groups, return_counts=True)
    ends = np.cumsum(counts)
    return [
        (int(number), tokenized.select(order[end - count : end]))
        for number, count, end in zip(numbers, counts, ends, strict=True)
    ]


def concatenate(parts: list[TokenizedDocuments]) -> TokenizedDocuments:
    """Join documents, in the order of the parts."""
    return TokenizedDocuments(
        concatenate_documents([part.documents for part in parts]),
        np.concatenate([part.hashes for part in parts]),
    )


def to_bytes(tokenized: TokenizedDocuments) -> list[bytes]:
    """Pack documents.

    Returns:
        Bytes of four sizes (int64), hashes, sentences of documents, tokens of sentences, and the
        tokens.
    """
    documents = tokenized.documents
    tokens = documents.tokens
    token_type: np.dtype = np.dtype(np.int32)
    if tokens.max(initial=0) < 2**16:
        token_type = np.dtype(np.uint16)
    sizes = (token_type.itemsize, len(documents), documents.num_sentences, len(tokens))
    return [
        np.array(sizes, np.int64).tobytes(),
        tokenized.hashes.tobytes(),
        np.diff(documents.document_offsets).astype(np.uint32).tobytes(),
        np.diff(documents.sentence_offsets).astype(np.uint32).tobytes(),
        tokens.astype(token_type).tobytes(),
    ]


def from_bytes(blob: bytes) -> TokenizedDocuments:
    """Unpack the documents of `to_bytes`."""
    item_size, num_documents, num_sentences, num_tokens = np.frombuffer(blob, np.int64, 4).tolist()
    hashes_at = _HEAD_BYTES
    documents_at = hashes_at + 8 * num_documents
    sentences_at = documents_at + 4 * num_documents
    tokens_at = sentences_at + 4 * num_sentences
    token_type = np.uint16 if item_size == 2 else np.int32
    tokens = np.frombuffer(blob, token_type, num_tokens, tokens_at)
    return TokenizedDocuments(
        FlatDocuments(
            tokens.astype(np.int32),
            offsets_of(np.frombuffer(blob, np.uint32, num_sentences, sentences_at)),
            offsets_of(np.frombuffer(blob, np.uint32, num_documents, documents_at)),
        ),
        np.frombuffer(blob, np.uint64, num_documents, hashes_at),
    )

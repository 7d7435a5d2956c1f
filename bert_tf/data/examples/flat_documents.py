"""Tokenized documents as flat arrays: no list per document, sentence or token."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import take_ranges


@dataclasses.dataclass(frozen=True)
class FlatDocuments:
    """Documents one after the other.

    Attributes:
        tokens: int32 [tokens] ids of all sentences.
        sentence_offsets: int64 [sentences + 1] into `tokens`.
        document_offsets: int64 [documents + 1] into the sentences.
    """

    tokens: np.ndarray
    sentence_offsets: np.ndarray
    document_offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.document_offsets) - 1

    @property
    def num_sentences(self) -> int:
        """Sentences of all documents."""
        return len(self.sentence_offsets) - 1

    def without_empty_sentences(self) -> FlatDocuments:
        """The same documents without the sentences that have no tokens."""
        lengths = np.diff(self.sentence_offsets)
        kept_before = offsets_of((lengths > 0).astype(np.int64))
        return FlatDocuments(
            self.tokens,
            offsets_of(lengths[lengths > 0]),
            kept_before[self.document_offsets],
        )

    def select(self, documents: np.ndarray) -> FlatDocuments:
        """The documents with these numbers, int64 [n], in that order."""
        begins = self.document_offsets[documents]
        counts = np.diff(self.document_offsets)[documents]
        lengths = np.diff(self.sentence_offsets)
        num_tokens = np.diff(self.sentence_offsets[self.document_offsets])[documents]
        return FlatDocuments(
            take_ranges(self.tokens, self.sentence_offsets[begins], num_tokens),
            offsets_of(take_ranges(lengths, begins, counts)),
            offsets_of(counts),
        )


def concatenate_documents(parts: list[FlatDocuments]) -> FlatDocuments:
    """The documents of all parts, in order; at least one part."""
    return FlatDocuments(
        np.concatenate([part.tokens for part in parts]),
        offsets_of(np.concatenate([np.diff(part.sentence_offsets) for part in parts])),
        offsets_of(np.concatenate([np.diff(part.document_offsets) for part in parts])),
    )

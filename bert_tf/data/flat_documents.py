"""Tokenised documents as flat arrays: no list per document, sentence or piece."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class FlatDocuments:
    """Documents one after the other.

    Attributes:
        pieces: int32 [pieces] ids of all sentences.
        sentence_offsets: int64 [sentences + 1] into `pieces`.
        document_offsets: int64 [documents + 1] into the sentences.
    """

    pieces: np.ndarray
    sentence_offsets: np.ndarray
    document_offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.document_offsets) - 1

    @property
    def num_sentences(self) -> int:
        """Sentences of all documents."""
        return len(self.sentence_offsets) - 1

    def without_empty_sentences(self) -> FlatDocuments:
        """The same documents, but sentences that have no pieces are gone."""
        lengths = np.diff(self.sentence_offsets)
        kept_before = offsets_of((lengths > 0).astype(np.int64))
        return FlatDocuments(
            self.pieces,
            offsets_of(lengths[lengths > 0]),
            kept_before[self.document_offsets],
        )

    def select(self, documents: np.ndarray) -> FlatDocuments:
        """The documents with these numbers, int64 [n], in that order."""
        sentences = expand_ranges(
            self.document_offsets[documents], np.diff(self.document_offsets)[documents]
        )
        lengths = np.diff(self.sentence_offsets)[sentences]
        pieces = expand_ranges(self.sentence_offsets[sentences], lengths)
        return FlatDocuments(
            self.pieces[pieces],
            offsets_of(lengths),
            offsets_of(np.diff(self.document_offsets)[documents]),
        )


def concatenate_documents(parts: list[FlatDocuments]) -> FlatDocuments:
    """The documents of all parts, in order; at least one part."""
    return FlatDocuments(
        np.concatenate([part.pieces for part in parts]),
        offsets_of(np.concatenate([np.diff(part.sentence_offsets) for part in parts])),
        offsets_of(np.concatenate([np.diff(part.document_offsets) for part in parts])),
    )


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Where things of these lengths begin and end when laid end to end: int64 [n + 1].

    | lengths | offsets      |
    |---------|--------------|
    | 2, 0, 3 | 0, 2, 2, 5   |
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def expand_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All numbers of several ranges, one range after the other: int64 [sum of lengths].

    | starts | lengths | numbers        |
    |--------|---------|----------------|
    | 7, 3   | 3, 2    | 7, 8, 9, 3, 4  |
    """
    offsets = offsets_of(lengths)
    shifts = np.repeat(starts - offsets[:-1], lengths)
    return np.arange(offsets[-1], dtype=np.int64) + shifts

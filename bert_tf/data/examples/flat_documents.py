"""Tokenized documents as flat arrays, instead of a list per document, sentence or token."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.base.kernels import take_ranges
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR


@dataclasses.dataclass(frozen=True)
class FlatDocuments:
    """Documents one after the other.

    Attributes:
        tokens: int32 [tokens], ids of all sentences.
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
        """Number of sentences of all documents."""
        return len(self.sentence_offsets) - 1

    def without_empty_sentences(self) -> FlatDocuments:
        """Return the same documents without sentences that have no tokens."""
        lengths = np.diff(self.sentence_offsets)
        kept_before = offsets_of((lengths > 0).astype(np.int64))
        return FlatDocuments(
            self.tokens, offsets_of(lengths[lengths > 0]), kept_before[self.document_offsets]
        )

    def select(self, documents: np.ndarray) -> FlatDocuments:
        """Return the documents with these numbers, int64 [n], in that order."""
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
    """Return the documents of all parts, in order; there must be at least one part."""
    return FlatDocuments(
        np.concatenate([part.tokens for part in parts]),
        offsets_of(np.concatenate([np.diff(part.sentence_offsets) for part in parts])),
        offsets_of(np.concatenate([np.diff(part.document_offsets) for part in parts])),
    )


# A part gets a quarter of a pair's tokens, because a pair usually holds about four sentences.
_PARTS_OF_PAIR = 4


def cut_long_sentences(
    documents: FlatDocuments, begins_word: np.ndarray, *, max_seq_length: int
) -> tuple[FlatDocuments, int]:
    """Cut long sentences into parts of about equal length, so that no word is lost.

    `segment_pairs` shortens pairs from both ends, so the ends of a sentence that fills a pair would
    be in no example. A sentence is cut if it has more than the `max_seq_length - 3` tokens of a
    pair. It is also cut if it has more than half of them, and its document has most of its tokens
    in such sentences, or is the only document. Parts begin with words; only a word longer than a
    part is cut itself.

    Example: one document has sentences of 9 and 2 tokens, another one of 5 and 4; rows have 11
    tokens, so a pair has 8 and a part 2. Then 9 becomes 1, 2, 2, 2, 2 (longer than a pair), 5
    becomes 1, 2, 2 (longer than half, and most of its document); 2 and 4 stay.

    Args:
        documents: every sentence has at least one token.
        begins_word: bool [vocabulary], False for tokens that continue a word.
        max_seq_length: tokens of a row, including [CLS] and two [SEP].

    Returns:
        The documents, and the number of sentences that were cut.
    """
    capacity = max_seq_length - SPECIALS_OF_PAIR
    lengths = np.diff(documents.sentence_offsets)
    fills_half = lengths > capacity // 2
    if not fills_half.any():
        return documents, 0
    counts = np.diff(documents.document_offsets)
    document_of = np.repeat(np.arange(len(documents)), counts)  # int64 [sentences]
    tokens = np.bincount(document_of, lengths, len(documents))
    in_long_ones = np.bincount(document_of, lengths * fills_half, len(documents))
    # A document without another one to pair with needs its sentences cut in any case.
    threshold = 0 if len(documents) == 1 else tokens
    cuts_half = 2 * in_long_ones > threshold
    is_cut = (lengths > capacity) | (fills_half & cuts_half[document_of])
    tokens_per_part = max(capacity // _PARTS_OF_PAIR, 1)
    parts = np.where(is_cut, -(-lengths // tokens_per_part), 1)
    offsets = np.empty(int(parts.sum()) + 1, np.int64)
    _place_borders(documents.tokens, documents.sentence_offsets, begins_word, parts, offsets)
    cut = dataclasses.replace(
        documents,
        sentence_offsets=offsets,
        document_offsets=offsets_of(parts)[documents.document_offsets],
    )
    return cut, int(is_cut.sum())


@numba.njit(cache=True, nogil=True)
def _place_borders(tokens, sentence_offsets, begins_word, parts, offsets):
    """Fill `offsets` with the first token of each part, and the end of the last part.

    A border moves back from an even division to the nearest beginning of a word.
    """
    made = 0
    for sentence in range(len(parts)):
        start = sentence_offsets[sentence]
        stop = sentence_offsets[sentence + 1]
        previous = start
        for part in range(parts[sentence]):
            even = start + (stop - start) * part // parts[sentence]
            border = even
            while border > previous and not begins_word[tokens[border]]:
                border -= 1
            if border == previous:  # a word is longer than a part, so it is cut
                border = even
            offsets[made] = border
            previous = border
            made += 1
    offsets[made] = sentence_offsets[-1]

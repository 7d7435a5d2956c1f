"""Savings of entries that are added to a vocabulary, in tokens of the corpus.

An added entry costs a row of the embedding table and of the masked-LM head, and knows nothing
until it is trained. It pays by shorter texts: an entry that the vocabulary so far writes with k
pieces saves k - 1 tokens whenever a word is written with it. Removing entries that save little
makes others be used more often, so half of these go at a time, those that save least, and savings
are measured again until none is below the limit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline.vocabulary.learner import CONTINUATION
from pipeline.vocabulary.quality import write_words


@dataclasses.dataclass(frozen=True)
class EntrySaving:
    """The saving of an added entry.

    Attributes:
        entry: the entry.
        uses: how often the words of the corpus are written with it.
        pieces_before: pieces that the vocabulary to extend writes it with; 0 if it cannot.
    """

    entry: str
    uses: int
    pieces_before: int

    @property
    def tokens(self) -> int:
        """Tokens of the corpus that it saves."""
        return self.uses * max(self.pieces_before - 1, 0)

    @property
    def is_needed(self) -> bool:
        """Whether there are texts that cannot be written without it, however few."""
        return self.pieces_before == 0


@dataclasses.dataclass(frozen=True)
class ExtendedVocabulary:
    """A vocabulary whose added entries pay.

    Attributes:
        pieces: its entries, those of the vocabulary to extend first.
        savings: of the added entries, the largest first.
        left_out: number of entries that save too little.
        tokens_before, tokens: tokens of the corpus with the vocabulary to extend, and with this.
    """

    pieces: list[str]
    savings: list[EntrySaving]
    left_out: int
    tokens_before: int
    tokens: int


def entries_that_pay(
    pieces: Sequence[str],
    words: pa.Array,
    counts: np.ndarray,
    *,
    num_base: int,
    min_saving: int,
) -> ExtendedVocabulary:
    """Leave out added entries that save fewer tokens of the corpus than `min_saving`.

    Args:
        pieces: the vocabulary, of which the first `num_base` are the one to extend.
        words: string [words], distinct.
        counts: int64 [words].
        num_base: entries of the vocabulary to extend.
        min_saving: tokens that an entry must save; 0 keeps all.
    """
    base, added = list(pieces[:num_base]), list(pieces[num_base:])
    known = set(base)
    before = {entry: pieces_of(entry, known) for entry in added}
    while True:
        lengths, uses = write_words([*base, *added], words, counts)
        savings = [
            EntrySaving(entry, int(used), before[entry])
            for entry, used in zip(added, uses[num_base:].tolist(), strict=True)
        ]
        poor = [each for each in savings if not each.is_needed and each.tokens < min_saving]
        if not poor:
            break
        # Among equals the later ones go, which were less frequent when they were learned.
        poor.reverse()
        poorest = sorted(poor, key=lambda each: each.tokens)[: (len(poor) + 1) // 2]
        leaving = {each.entry for each in poorest}
        added = [entry for entry in added if entry not in leaving]
    lengths_before, _ = write_words(base, words, counts)
    return ExtendedVocabulary(
        pieces=[*base, *added],
        savings=sorted(savings, key=lambda each: -each.tokens),
        left_out=len(pieces) - num_base - len(added),
        tokens_before=_tokens(lengths_before, counts),
        tokens=_tokens(lengths, counts),
    )


def pieces_of(entry: str, known: set[str]) -> int:
    """Return how many entries of a vocabulary write an entry, the longest first; 0 if none do."""
    prefix = CONTINUATION if entry.startswith(CONTINUATION) and entry != CONTINUATION else ""
    text = entry.removeprefix(prefix)
    count = begin = 0
    while begin < len(text):
        ends = range(len(text), begin, -1)
        end = next((end for end in ends if prefix + text[begin:end] in known), None)
        if end is None:
            return 0
        count += 1
        begin = end
        prefix = CONTINUATION
    return count


def _tokens(lengths: np.ndarray, counts: np.ndarray) -> int:
    """Return the tokens of a corpus; a word that cannot be written is one, [UNK]."""
    return int((np.maximum(lengths, 1) * counts).sum())

"""Savings of entries that are added to a vocabulary, in tokens of the corpus.

An added entry costs a row of the embedding table and of the masked-LM head, and it has to be
trained. Its gain is shorter texts: an entry that the vocabulary to extend writes with k pieces
saves k - 1 tokens whenever a word is written with it. When an entry is removed, others are used
more often. So only half of the entries that save too little are removed at a time, those that save
least, and savings are measured again until none is below the limit.
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
        entry: its text.
        uses: number of times that words of the corpus are written with it.
        pieces_before: number of pieces with which the vocabulary to extend writes it; 0 if it
            cannot.
    """

    entry: str
    uses: int
    pieces_before: int

    @property
    def tokens(self) -> int:
        """Number of tokens of the corpus that the entry saves."""
        return self.uses * max(self.pieces_before - 1, 0)

    @property
    def is_needed(self) -> bool:
        """Whether some text cannot be written without the entry."""
        return self.pieces_before == 0


@dataclasses.dataclass(frozen=True)
class ExtendedVocabulary:
    """A vocabulary whose added entries pay.

    Attributes:
        pieces: its entries, those of the vocabulary to extend first.
        savings: of the added entries, the largest first.
        left_out: number of entries that save too little.
        tokens_before, tokens: number of tokens of the corpus with the vocabulary to extend, and
            with this one.
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
        pieces: entries of the vocabulary to extend, then the added ones.
        words: string [words], distinct.
        counts: int64 [words].
        num_base: number of entries of the vocabulary to extend.
        min_saving: tokens that an entry must save; 0 keeps all.
    """
    base = list(pieces[:num_base])
    added = list(pieces[num_base:])
    known = set(base)
    before = {entry: pieces_of(entry, known) for entry in added}
    while True:
        lengths, uses = write_words([*base, *added], words, counts)
        savings = [
            EntrySaving(entry, int(used), before[entry])
            for entry, used in zip(added, uses[num_base:].tolist(), strict=True)
        ]
        optional = [saving for saving in savings if not saving.is_needed]
        poor = [saving for saving in optional if saving.tokens < min_saving]
        if not poor:
            break
        # Of equal ones, later ones are removed first: they were less frequent when they were
        # learned.
        poor.reverse()
        poorest = sorted(poor, key=lambda saving: saving.tokens)[: (len(poor) + 1) // 2]
        removed = {saving.entry for saving in poorest}
        added = [entry for entry in added if entry not in removed]
    lengths_before, _ = write_words(base, words, counts)
    return ExtendedVocabulary(
        pieces=[*base, *added],
        savings=sorted(savings, key=lambda saving: -saving.tokens),
        left_out=len(pieces) - num_base - len(added),
        tokens_before=_tokens(lengths_before, counts),
        tokens=_tokens(lengths, counts),
    )


def pieces_of(entry: str, known: set[str]) -> int:
    """Return the number of entries of a vocabulary that write an entry, the longest first.

    Args:
        entry: to write.
        known: entries of the vocabulary.

    Returns:
        0 if they cannot write it.
    """
    continues = entry.startswith(CONTINUATION) and entry != CONTINUATION
    prefix = CONTINUATION if continues else ""
    text = entry.removeprefix(prefix)
    count = 0
    begin = 0
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

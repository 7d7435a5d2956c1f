"""Learns a WordPiece vocabulary from word counts by merging the most frequent pair of pieces.

The algorithm is that of HuggingFace's `WordPieceTrainer` (byte pair encoding, Sennrich et
al. 2016). Ties go to the pair whose pieces are older, so the same counts always give the same
vocabulary. Unlike there, words with a character outside the kept alphabet are left out (they become
[UNK] anyway), and kept characters both begin and continue words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bert_tf.base.compiled import numba
from pipeline.corpus.characters import NUM_CODE_POINTS, decode
from pipeline.corpus.document_block import offsets_and_data
from pipeline.vocabulary.merging import merge_pairs
from pipeline.vocabulary.quality import prune_pieces
from pipeline.vocabulary.word_splitter import WORD, word_tables

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"
# Merging takes about 500 bytes per word. Words beyond this number are too rare to matter: in a
# corpus of 100 GB, each occurs about once in a billion words.
MOST_WORDS = 10_000_000


@dataclasses.dataclass(frozen=True)
class LearnedVocabulary:
    """A vocabulary and its alphabet.

    Attributes:
        pieces: the special tokens, or those of the vocabulary that was extended; characters,
            continuing characters, then merged pieces in the order they were learned.
        alphabet: characters kept.
        alphabet_left_out: number of characters seen but not kept.
    """

    pieces: list[str]
    alphabet: str
    alphabet_left_out: int


def learn_vocabulary(
    words: pa.Array,
    counts: np.ndarray,
    *,
    vocab_size: int,
    min_frequency: int,
    limit_alphabet: int,
    extra_pieces: float = 0.0,
    base: Sequence[str] = SPECIALS,
) -> LearnedVocabulary:
    """Learn `vocab_size` pieces, special tokens included, or fewer if no pair is left to merge.

    Args:
        words: string [words], distinct, none empty, in any order.
        counts: int64 [words].
        vocab_size: entries.
        min_frequency: pairs seen fewer times are not merged.
        limit_alphabet: number of characters to keep at most, the most frequent ones.
        extra_pieces: fraction of `vocab_size` that is learned in addition, until the least used
            pieces are removed (see `prune_pieces`).
        base: pieces that come first and stay; another vocabulary to extend it for these words.
    """
    words, counts = _most_frequent(words, counts)
    order = pc.sort_indices(words)
    words = words.take(order)
    counts = counts[order.to_numpy()]
    offsets, data = offsets_and_data(words)
    frequencies = _count_characters(data, offsets, counts)
    known = set(base)
    kept = _choose_alphabet(frequencies, limit_alphabet, vocab_size - len(base), known)
    alphabet = "".join(map(chr, kept))
    continuing = [character for character in alphabet if _may_continue(character)]
    singles = [*alphabet, *(CONTINUATION + character for character in continuing)]
    # Row 0 has the symbols that begin a word, row 1 those that continue it.
    symbol_of = np.full((2, NUM_CODE_POINTS), -1, np.int32)
    symbol_of[0, list(map(ord, alphabet))] = np.arange(len(alphabet))
    symbol_of[1, list(map(ord, continuing))] = np.arange(len(alphabet), len(singles))
    symbols, bounds, kept_words = _words_as_symbols(data, offsets, symbol_of)
    first, second = merge_pairs(
        symbols,
        bounds,
        counts[kept_words],
        num_singles=len(singles),
        most_symbols=vocab_size + int(extra_pieces * vocab_size) - len(SPECIALS),
        min_frequency=max(min_frequency, 1),
    )
    spelled = list(singles)
    for left, right in zip(first.tolist(), second.tolist(), strict=True):
        spelled.append(spelled[left] + spelled[right].removeprefix(CONTINUATION))
    pieces = [*base, *(piece for piece in spelled if piece not in known)]
    num_fixed = len(base) + sum(single not in known for single in singles)
    pieces = prune_pieces(pieces, words, counts, size=vocab_size, num_fixed=num_fixed)
    return LearnedVocabulary(
        pieces=pieces,
        alphabet=alphabet,
        alphabet_left_out=int(np.count_nonzero(frequencies)) - len(kept),
    )


def _most_frequent(words: pa.Array, counts: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """Return the most frequent words, at most MOST_WORDS; of equally frequent ones, all or none."""
    if len(words) <= MOST_WORDS:
        return words, counts
    threshold = np.partition(counts, -MOST_WORDS)[-MOST_WORDS] + 1
    return words.filter(pa.array(counts >= threshold)), counts[counts >= threshold]


def _choose_alphabet(
    frequencies: np.ndarray, limit: int, capacity: int, known: set[str]
) -> list[int]:
    """Choose the most frequent code points whose new pieces fit into `capacity` entries, sorted."""
    seen = np.flatnonzero(frequencies)
    by_frequency = seen[np.argsort(-frequencies[seen], kind="stable")]
    chosen: list[int] = []
    for code_point in by_frequency[:limit].tolist():
        character = chr(code_point)
        if character not in known:
            capacity -= 1
        if _may_continue(character) and CONTINUATION + character not in known:
            capacity -= 1
        if capacity < 0:
            break
        chosen.append(code_point)
    return sorted(chosen)


def _may_continue(character: str) -> bool:
    """Return whether a word can have the character after its first.

    Punctuation is a word by itself.
    """
    return word_tables(lowercase=False).actions[ord(character)] == WORD


@numba.njit(cache=True, nogil=True)
def _count_characters(data, offsets, counts):
    """Return the occurrences of each code point in words, int64 [NUM_CODE_POINTS]."""
    frequencies = np.zeros(NUM_CODE_POINTS, np.int64)
    for word in range(len(counts)):
        position = offsets[word]
        while position < offsets[word + 1]:
            code_point, width = decode(data, position)
            frequencies[code_point] += counts[word]
            position += width
    return frequencies


@numba.njit(cache=True, nogil=True)
def _words_as_symbols(data, offsets, symbol_of):
    """Write words of kept characters as symbols.

    Args:
        data, offsets: of all words, UTF-8.
        symbol_of: int32 [2, NUM_CODE_POINTS], symbols that begin and that continue a word, -1 for
            none.

    Returns:
        Symbols (int32), bounds (int64 [kept + 1]) and the places of the words (int64 [kept]).
    """
    symbols = np.empty(len(data), np.int32)
    bounds = np.zeros(len(offsets), np.int64)
    kept = np.empty(len(offsets) - 1, np.int64)
    num_words = 0
    for word in range(len(offsets) - 1):
        position = np.int64(offsets[word])
        written = bounds[num_words]
        row = 0  # of `symbol_of`
        while position < offsets[word + 1]:
            code_point, width = decode(data, position)
            symbol = symbol_of[row, code_point]
            if symbol < 0:
                break
            symbols[written] = symbol
            written += 1
            row = 1
            position += width
        if position == offsets[word + 1]:
            kept[num_words] = word
            num_words += 1
            bounds[num_words] = written
    return symbols[: bounds[num_words]], bounds[: num_words + 1], kept[:num_words]

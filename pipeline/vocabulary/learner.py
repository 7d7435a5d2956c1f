"""Learns a WordPiece vocabulary from word counts by merging the most frequent pair of pieces.

The algorithm is the byte-pair merging of Sennrich et al. 2016 on characters, with pieces that
continue a word kept apart by `##`: what HuggingFace's `BertWordPieceTokenizer.train` computes.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from numba.typed import Dict

SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"


def learn_pieces(
    words: Sequence[str],
    counts: np.ndarray,
    *,
    vocab_size: int,
    limit_alphabet: int,
    min_frequency: int,
) -> list[str]:
    """Makes a vocabulary out of distinct words and how often each was seen.

    The result depends on the set of (word, count) only, not on its order.

    Args:
        words: distinct words as the BERT tokenizer splits text, none empty.
        counts: int64 [words], occurrences of each.
        vocab_size: entries wanted, special pieces included. Fewer are returned when no pair of
            pieces is left that was seen `min_frequency` times.
        limit_alphabet: characters kept, the most frequent first, ties by code point. Words with
            another character are left out.
        min_frequency: a pair seen fewer times is not merged.

    Returns:
        The special pieces, the characters that start a word, those that continue one (each in
        order of code points), then the merged pieces in the order they were made.
    """
    characters, lengths = _code_points(words)
    kept_words = _words_of_frequent_characters(characters, lengths, counts, limit_alphabet)
    characters = characters[np.repeat(kept_words, lengths)]
    lengths, counts = lengths[kept_words], counts[kept_words]
    if not len(lengths):
        return list(SPECIAL_PIECES)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    is_first = np.zeros(len(characters), bool)
    is_first[starts] = True
    alphabet, symbols = np.unique(
        characters.astype(np.int64) + np.where(is_first, 0, 1 << 32), return_inverse=True
    )
    pieces = [
        chr(key) if key < 1 << 32 else CONTINUATION + chr(key - (1 << 32)) for key in alphabet
    ]
    wanted = vocab_size - len(SPECIAL_PIECES)
    if len(pieces) > wanted:
        return [*SPECIAL_PIECES, *pieces[: max(0, wanted)]]
    piece_starts, piece_lengths = _merge_pairs(
        characters,
        symbols.astype(np.int64),
        is_first,
        np.repeat(counts.astype(np.int64), lengths),
        len(alphabet),
        wanted,
        min_frequency,
    )
    text = characters.astype("<u4").tobytes().decode("utf-32-le")
    for start, length in zip(piece_starts.tolist(), piece_lengths.tolist(), strict=True):
        prefix = "" if is_first[start] else CONTINUATION
        pieces.append(prefix + text[start : start + length])
    return [*SPECIAL_PIECES, *pieces]


def _code_points(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    characters = np.frombuffer("".join(words).encode("utf-32-le"), dtype="<u4")
    return characters, np.fromiter(map(len, words), dtype=np.int64, count=len(words))


def _words_of_frequent_characters(
    characters: np.ndarray, lengths: np.ndarray, counts: np.ndarray, limit: int
) -> np.ndarray:
    """bool [words]: the words whose characters are all among the `limit` most frequent ones."""
    distinct, index = np.unique(characters, return_inverse=True)
    if len(distinct) <= limit:
        return np.ones(len(lengths), bool)
    seen = np.bincount(index, weights=np.repeat(counts, lengths))
    frequent = np.zeros(len(distinct), bool)
    frequent[np.lexsort((distinct, -seen))[:limit]] = True
    word_of = np.repeat(np.arange(len(lengths)), lengths)
    rare_characters = np.bincount(word_of, weights=~frequent[index], minlength=len(lengths))
    return rare_characters == 0


class _Pairs(NamedTuple):
    """Neighbouring symbols, and for each pair the chain of places where it stood at some time.

    Attributes:
        key: int64 [capacity], left symbol << 32 | right symbol.
        seen: int64 [capacity], occurrences now.
        head, tail: int64 [capacity], first and last link of the pair's chain, -1 for none.
        place, link: int64 [capacity], by link: the place of the left symbol, the next link.
        used: int64 [1], links in use.
    """

    key: np.ndarray
    seen: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    place: np.ndarray
    link: np.ndarray
    used: np.ndarray


@numba.njit(cache=True)
def _add_pair(pairs, pair_of, left, right, place, weight):
    """Counts a pair at a place; returns the pair's number."""
    key = (left << 32) | right
    if key not in pair_of:
        pairs.key[len(pair_of)] = key
        pair_of[key] = len(pair_of)
    pair = pair_of[key]
    pairs.seen[pair] += weight
    new = pairs.used[0]
    pairs.used[0] += 1
    pairs.place[new] = place
    if pairs.head[pair] == -1:
        pairs.head[pair] = new
    else:
        pairs.link[pairs.tail[pair]] = new
    pairs.tail[pair] = new
    return pair


@numba.njit(cache=True)
def _neighbours(is_first):
    """The places before and after each place of the same word, -1 for none."""
    size = len(is_first)
    preceding, following = np.arange(-1, size - 1), np.arange(1, size + 1)
    for place in range(size):
        if is_first[place]:
            preceding[place] = -1
            if place:
                following[place - 1] = -1
    following[size - 1] = -1
    return preceding, following


@numba.njit(cache=True)
def _merge_pairs(characters, symbols, is_first, weights, alphabet_size, wanted, min_frequency):
    """Merges the most frequent pair, ties by symbol numbers, until `wanted` symbols exist.

    Every symbol is known by a place where its text stands in `characters`. The words are linked
    lists of symbols, which lose a place at each merge.

    Args:
        characters: uint32 [n], all words one after the other.
        symbols: int64 [n], number of the one-character symbol at each place.
        is_first: bool [n], whether a word starts here.
        weights: int64 [n], count of the word that each place belongs to.
        alphabet_size: one-character symbols.
        wanted: symbols in all.
        min_frequency: smallest count of a pair that is merged.

    Returns:
        Start and length in `characters` of each merged symbol, int64 each.
    """
    size = len(symbols)
    preceding, following = _neighbours(is_first)
    start_of, length_of = np.zeros(wanted, np.int64), np.ones(wanted, np.int64)
    symbol_of_text = Dict.empty(numba.uint64, numba.int64)
    capacity = 3 * size + 1  # a merge takes one place away and adds two pairs at most
    pairs = _Pairs(
        np.empty(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.full(capacity, -1),
        np.full(capacity, -1),
        np.empty(capacity, np.int64),
        np.full(capacity, -1),
        np.zeros(1, np.int64),
    )
    pair_of = Dict.empty(numba.int64, numba.int64)
    for place in range(size):
        start_of[symbols[place]] = place
        if following[place] != -1:
            right = symbols[following[place]]
            _add_pair(pairs, pair_of, symbols[place], right, place, weights[place])
    seen = pairs.seen  # a local name: numba loses updates through the tuple in the loop below
    queue = [(-seen[pair], pairs.key[pair], pair) for pair in range(len(pair_of))]
    heapq.heapify(queue)

    touched_in_round = np.full(capacity, -1)
    made, round_number = alphabet_size, 0
    while made < wanted and len(queue):
        negative_count, key, best = heapq.heappop(queue)
        count = seen[best]
        if count < max(min_frequency, 1):
            continue
        if -negative_count != count:
            heapq.heappush(queue, (-count, key, best))
            continue
        left, right = key >> 32, key & 0xFFFFFFFF
        merged = -1
        touched = [best for _ in range(0)]
        link = pairs.head[best]
        while link != -1:
            place = pairs.place[link]
            link = pairs.link[link]
            other = following[place]
            if symbols[place] != left or other == -1 or symbols[other] != right:
                continue  # an earlier merge took one of the two
            if merged == -1:
                length = length_of[left] + length_of[right]
                merged = _known_symbol(
                    characters, is_first, place, length, symbol_of_text, start_of, length_of, made
                )
                if merged == made:
                    start_of[made], length_of[made] = place, length
                    made += 1
            before, after, weight = preceding[place], following[other], weights[place]
            symbols[place], symbols[other] = merged, -1
            following[place] = after
            if after != -1:
                preceding[after] = place
                seen[pair_of[(right << 32) | symbols[after]]] -= weight
            if before != -1:
                seen[pair_of[(symbols[before] << 32) | left]] -= weight
            for new_left in (before, place):
                if new_left == -1 or following[new_left] == -1:
                    continue
                new_right = symbols[following[new_left]]
                pair = _add_pair(pairs, pair_of, symbols[new_left], new_right, new_left, weight)
                if touched_in_round[pair] != round_number:
                    touched_in_round[pair] = round_number
                    touched.append(pair)
        seen[best] = 0
        for pair in touched:
            heapq.heappush(queue, (-seen[pair], pairs.key[pair], pair))
        round_number += 1
    return start_of[alphabet_size:made], length_of[alphabet_size:made]


@numba.njit(cache=True)
def _known_symbol(characters, is_first, place, length, symbol_of_text, start_of, length_of, made):
    """The symbol with the text at `place`, or `made` where there is none yet.

    Two different pairs can spell the same piece (`ab ##c`, `a ##bc`).
    """
    text_hash = np.uint64(14695981039346656037) ^ np.uint64(is_first[place])
    for offset in range(length):
        text_hash = (text_hash ^ np.uint64(characters[place + offset])) * np.uint64(1099511628211)
    while text_hash in symbol_of_text:
        symbol = symbol_of_text[text_hash]
        start = start_of[symbol]
        same = length_of[symbol] == length and is_first[start] == is_first[place]
        for offset in range(length if same else 0):
            same = same and characters[start + offset] == characters[place + offset]
        if same:
            return symbol
        text_hash += np.uint64(1)
    symbol_of_text[text_hash] = made
    return made

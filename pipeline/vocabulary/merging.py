"""Merges the most frequent pair of symbols, again and again, over words as arrays of symbols.

This is byte pair encoding (Sennrich et al. 2016), in time proportional to the changes:

- Each pair of neighboring symbols has its total, and a chain of words it may be in. A merge visits
  only these words, and changes the totals of the pairs around each place.
- The most frequent pair is on top of a heap. Entries do not move when a total changes. A pair with
  a higher total is pushed again. A pair with a lower total is recognized when it comes to the top,
  and pushed with its present total.
- Chains are never cleaned: a word that has lost the pair meanwhile is visited in vain.

All loops are compiled, and return after some tenths of a second, so that Python sees signals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import GOLDEN_RATIO, fnv1a

_LOW = (1 << 32) - 1
# Places in `_Pairs.sizes`.
_PAIRS = 0
_NODES = 1
_TOUCHED = 2
_HEAP = 3
# Places in `progress` of `_merge`: merges that made a symbol, and all merges.
_MADE = 0
_STEPS = 1
# Words that are visited in a call of the compiled loops, which takes some tenths of a second:
# Python handles signals only between calls.
_WORDS_CHUNK_SIZE = 1 << 18


class _Pairs(NamedTuple):
    """The pairs of neighboring symbols; a pair has a number and a place in each array.

    Attributes:
        sizes: int64 [4], numbers of pairs, nodes, touched pairs, heap entries.
        buckets: int32, the last pair of each hash bucket, -1 for none.
        next_in_bucket: int32, the pair before it in the same bucket.
        keys: int64, left symbol << 32 | right symbol.
        totals: int64, number of occurrences in the text.
        steps: int32, the step in which the pair was last touched.
        heads: int32, first node of the chain of words the pair may be in, -1 for none.
        node_words: int32, the word of a node.
        next_nodes: int32, the node after it.
        touched: int32, the pairs whose totals rose in this step.
        heap_totals: int64, a heap with the highest total on top.
        heap_pairs: int32, the pair of each total; ties are broken by the lowest key.
    """

    sizes: np.ndarray
    buckets: np.ndarray
    next_in_bucket: np.ndarray
    keys: np.ndarray
    totals: np.ndarray
    steps: np.ndarray
    heads: np.ndarray
    node_words: np.ndarray
    next_nodes: np.ndarray
    touched: np.ndarray
    heap_totals: np.ndarray
    heap_pairs: np.ndarray


class _Words(NamedTuple):
    """Words as symbols, which merges change.

    Attributes:
        symbols: int32, of all words, one word after the other.
        bounds: int64 [words + 1], where words begin.
        lengths: int64 [words], in symbols; merges make them shorter.
        counts: int64 [words].
    """

    symbols: np.ndarray
    bounds: np.ndarray
    lengths: np.ndarray
    counts: np.ndarray


class _Spellings(NamedTuple):
    """Spellings of symbols, in single symbols.

    Attributes:
        letters: int32, the spellings one after the other.
        bounds: int64 [symbols + 1], where each begins.
        slots: int32, open-addressing hash table of symbols by spelling, -1 where free.
    """

    letters: np.ndarray
    bounds: np.ndarray
    slots: np.ndarray


def merge_pairs(
    symbols: np.ndarray,
    bounds: np.ndarray,
    counts: np.ndarray,
    *,
    num_singles: int,
    most_symbols: int,
    min_frequency: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Merge pairs of symbols until there are enough symbols.

    Of equally frequent pairs, the one with the smaller left symbol is merged first, then the
    smaller right one. A merge that spells a symbol which exists already (`ab` + `c` after `a` +
    `bc`) gives that symbol.

    Args:
        symbols: int32, the words' symbols below `num_singles`, one word after the other; modified.
        bounds: int64 [words + 1], where words begin in `symbols`.
        counts: int64 [words].
        num_singles: symbols to begin with.
        most_symbols: symbols to end with.
        min_frequency: pairs seen fewer times are not merged.

    Returns:
        Left and right symbol of each new one, numbered from `num_singles` on (int32 [merges] each).
    """
    merges = max(most_symbols - num_singles, 0)
    left = np.empty(merges, np.int32)
    right = np.empty(merges, np.int32)
    words = _Words(symbols, bounds, np.diff(bounds), counts)
    pairs = _empty_pairs(len(symbols))
    spellings = _single_spellings(num_singles, merges, int(words.lengths.max(initial=1)))
    for first_word in range(0, len(counts), _WORDS_CHUNK_SIZE):
        _count_pairs(words, pairs, first_word, first_word + _WORDS_CHUNK_SIZE)
    progress = np.zeros(2, np.int64)
    while _merge(words, pairs, spellings, min_frequency, left, right, progress, _WORDS_CHUNK_SIZE):
        pass
    made = int(progress[_MADE])
    return left[:made], right[:made]


def _empty_pairs(num_symbols: int) -> _Pairs:
    """Make arrays for all possible pairs, at most three for each symbol.

    Memory is committed on use.
    """
    capacity = 3 * num_symbols + 1
    return _Pairs(
        sizes=np.zeros(4, np.int64),
        buckets=np.full(_power_of_two(num_symbols // 4 + 1024), -1, np.int32),
        next_in_bucket=np.empty(capacity, np.int32),
        keys=np.empty(capacity, np.int64),
        totals=np.empty(capacity, np.int64),
        steps=np.empty(capacity, np.int32),
        heads=np.empty(capacity, np.int32),
        node_words=np.empty(capacity, np.int32),
        next_nodes=np.empty(capacity, np.int32),
        touched=np.empty(capacity, np.int32),
        heap_totals=np.empty(capacity, np.int64),
        heap_pairs=np.empty(capacity, np.int32),
    )


def _single_spellings(num_singles: int, merges: int, longest: int) -> _Spellings:
    """Make the spellings of single symbols, with room for those of merges."""
    letters = np.empty(num_singles + (merges + 1) * longest, np.int32)
    letters[:num_singles] = np.arange(num_singles)
    bounds = np.zeros(num_singles + merges + 2, np.int64)
    bounds[: num_singles + 1] = np.arange(num_singles + 1)
    slots = np.full(_power_of_two(4 * (num_singles + merges) + 16), -1, np.int32)
    spellings = _Spellings(letters, bounds, slots)
    for single in range(num_singles):
        slots[_slot_of_spelling(spellings, single, single + 1)] = single
    return spellings


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


@numba.njit(cache=True)
def _slot_of_spelling(spellings, begin, end):
    """Return where the symbol spelled `letters[begin:end]` is in the table, or a free place."""
    letters = spellings.letters
    bounds = spellings.bounds
    slots = spellings.slots
    mask = len(slots) - 1
    value = fnv1a(letters, begin, end)
    slot = np.int64((value ^ (value >> np.uint64(32))) & np.uint64(mask))
    while slots[slot] >= 0:
        symbol = slots[slot]
        start = bounds[symbol]
        if bounds[symbol + 1] - start == end - begin:
            place = 0
            while place < end - begin and letters[start + place] == letters[begin + place]:
                place += 1
            if place == end - begin:
                break
        slot = (slot + 1) & mask
    return slot


@numba.njit(cache=True, nogil=True)
def _count_pairs(words, pairs, first_word, stop_word):
    """Add the pairs of some words to the totals."""
    symbols = words.symbols
    for word in range(first_word, min(stop_word, len(words.counts))):
        for place in range(words.bounds[word], words.bounds[word + 1] - 1):
            _change(pairs, symbols[place], symbols[place + 1], word, words.counts[word], 0)


@numba.njit(cache=True, nogil=True)
def _merge(words, pairs, spellings, min_frequency, left, right, progress, most_words):
    """Merge the most frequent pairs, one after the other.

    Args:
        words, pairs, spellings: changed by each merge.
        min_frequency: pairs seen fewer times are not merged.
        left, right: int32 [merges], set to the symbols of each new one.
        progress: int64 [2], symbols made (`_MADE`) and merges done (`_STEPS`) so far.
        most_words: words to change in this call, about, so that it can be interrupted.

    Returns:
        Whether to call again with the same `progress`.
    """
    num_singles = len(spellings.bounds) - 2 - len(left)
    visited = 0  # words, and merges, so that merges without words count as well
    while progress[_MADE] < len(left) and visited < most_words:
        for index in range(pairs.sizes[_TOUCHED]):
            _push(pairs, pairs.touched[index])
        pairs.sizes[_TOUCHED] = 0
        best = _pop_best(pairs, min_frequency)
        if best < 0:
            return False
        progress[_STEPS] += 1
        made = progress[_MADE]
        step = progress[_STEPS]
        first = pairs.keys[best] >> 32
        second = pairs.keys[best] & _LOW
        new = _symbol_of(spellings, first, second, num_singles + made)
        if new == num_singles + made:
            left[made] = first
            right[made] = second
            progress[_MADE] += 1
        node = pairs.heads[best]
        pairs.heads[best] = -1
        while node >= 0:
            word = pairs.node_words[node]
            node = pairs.next_nodes[node]
            _merge_in_word(words, word, pairs, first, second, new, step)
            visited += 1
        pairs.totals[best] = 0
        visited += 1
    return progress[_MADE] < len(left)


@numba.njit(cache=True)
def _merge_in_word(words, word, pairs, first, second, new, step):
    """Make one symbol of a pair wherever it occurs in a word.

    Args:
        words: all words.
        word: number of the word.
        pairs: pairs, whose totals change.
        first, second: the symbols of the pair.
        new: the symbol that they become.
        step: number of the merge, see `_change`.
    """
    symbols = words.symbols
    count = words.counts[word]
    begin = words.bounds[word]
    end = begin + words.lengths[word]
    place = begin
    while place + 1 < end:
        if symbols[place] == first and symbols[place + 1] == second:
            if place > begin:
                _change(pairs, symbols[place - 1], first, word, -count, step)
                _change(pairs, symbols[place - 1], new, word, count, step)
            if place + 2 < end:
                _change(pairs, second, symbols[place + 2], word, -count, step)
                _change(pairs, new, symbols[place + 2], word, count, step)
            symbols[place] = new
            end -= 1
            for following in range(place + 1, end):
                symbols[following] = symbols[following + 1]
        place += 1
    words.lengths[word] = end - begin


@numba.njit(cache=True)
def _change(pairs, first, second, word, amount, step):
    """Change a pair's total; a positive amount adds the word to the pair's chain.

    Args:
        pairs: all pairs; the pair is added if it is new.
        first, second: symbols of the pair.
        word: number of the word.
        amount: to add to the total.
        step: number of the merge; 0 for the first count.
    """
    key = np.int64(first) << 32 | np.int64(second)
    mixed = np.uint64(key) * GOLDEN_RATIO
    bucket = np.int64(mixed >> np.uint64(32)) & (len(pairs.buckets) - 1)
    pair = np.int64(pairs.buckets[bucket])
    while pair >= 0 and pairs.keys[pair] != key:
        pair = np.int64(pairs.next_in_bucket[pair])
    if pair < 0:
        pair = pairs.sizes[_PAIRS]
        pairs.sizes[_PAIRS] += 1
        pairs.next_in_bucket[pair] = pairs.buckets[bucket]
        pairs.buckets[bucket] = pair
        pairs.keys[pair] = key
        pairs.totals[pair] = 0
        pairs.heads[pair] = -1
        pairs.steps[pair] = -1
    pairs.totals[pair] += amount
    if amount <= 0:
        return
    head = pairs.heads[pair]
    if head < 0 or pairs.node_words[head] != word:
        node = pairs.sizes[_NODES]
        pairs.sizes[_NODES] += 1
        pairs.node_words[node] = word
        pairs.next_nodes[node] = head
        pairs.heads[pair] = node
    if pairs.steps[pair] != step:
        pairs.steps[pair] = step
        pairs.touched[pairs.sizes[_TOUCHED]] = pair
        pairs.sizes[_TOUCHED] += 1


@numba.njit(cache=True)
def _symbol_of(spellings, first, second, next_symbol):
    """Return the symbol with the joined spelling of two symbols: an old one or the next."""
    letters = spellings.letters
    bounds = spellings.bounds
    begin = bounds[next_symbol]
    end = begin
    for part in (first, second):
        for place in range(bounds[part], bounds[part + 1]):
            letters[end] = letters[place]
            end += 1
    slot = _slot_of_spelling(spellings, begin, end)
    if spellings.slots[slot] < 0:
        spellings.slots[slot] = next_symbol
        bounds[next_symbol + 1] = end
    return np.int64(spellings.slots[slot])


@numba.njit(cache=True)
def _pop_best(pairs, min_frequency):
    """Take the pair with the highest total off the heap; -1 if none is frequent enough."""
    while pairs.sizes[_HEAP] > 0:
        total = pairs.heap_totals[0]
        pair = np.int64(pairs.heap_pairs[0])
        _drop_top(pairs)
        if total < min_frequency:
            return np.int64(-1)
        if pairs.totals[pair] == total:
            return pair
        if pairs.totals[pair] >= min_frequency:
            _push(pairs, pair)
    return np.int64(-1)


@numba.njit(cache=True)
def _comes_first(pairs, total, pair, other_total, other_pair):
    """Return whether a pair is merged before another: by total, then by key."""
    return total > other_total or (
        total == other_total and pairs.keys[pair] < pairs.keys[other_pair]
    )


@numba.njit(cache=True)
def _push(pairs, pair):
    """Add a pair with its total to the heap."""
    total = pairs.totals[pair]
    place = pairs.sizes[_HEAP]
    pairs.sizes[_HEAP] += 1
    while place > 0:
        parent = (place - 1) >> 1
        parent_total = pairs.heap_totals[parent]
        parent_pair = pairs.heap_pairs[parent]
        if not _comes_first(pairs, total, pair, parent_total, parent_pair):
            break
        pairs.heap_totals[place] = parent_total
        pairs.heap_pairs[place] = parent_pair
        place = parent
    pairs.heap_totals[place] = total
    pairs.heap_pairs[place] = pair


@numba.njit(cache=True)
def _drop_top(pairs):
    """Remove the first pair of the heap."""
    totals = pairs.heap_totals
    entries = pairs.heap_pairs
    pairs.sizes[_HEAP] -= 1
    size = pairs.sizes[_HEAP]
    # The last entry moves down from the top, to the first place whose children come after it.
    total = totals[size]
    pair = entries[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _comes_first(
            pairs, totals[child + 1], entries[child + 1], totals[child], entries[child]
        ):
            child += 1
        if not _comes_first(pairs, totals[child], entries[child], total, pair):
            break
        totals[place] = totals[child]
        entries[place] = entries[child]
        place = child
    totals[place] = total
    entries[place] = pair

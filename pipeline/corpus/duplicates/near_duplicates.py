"""Near duplicates by MinHash (Broder 1997) of word 5-grams.

Two documents are as similar as the share of 5-grams that they have in common (Jaccard). Comparing
all pairs is out of the question, so:

1. Each document gets 128 minima: of each of 128 hash functions, the lowest value over its 5-grams.
   Two documents have an equal minimum with a probability that is their similarity.
2. Candidates share a band of minima (Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets",
   3.4); a pair of similarity s does with probability 1 - (1 - s^r)^b, for b bands of r minima.
   `choose_bands` takes the longest bands that find 95% of the pairs at the threshold.
3. Candidates are compared by sketches of 512 bytes: grams are spread over bins (one permutation
   hashing: Li, Owen, Zhang 2012), and the lowest of each bin flips a bit (odd sketch: Mitzenmacher,
   Pagh, Pham 2014). `estimated_similarity` turns the number of differing bits into a similarity.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numba
import numpy as np

from bert_tf.base.kernels import combine, mix64, next_bits, seed_key
from pipeline.corpus.duplicates.occurrences import first_of_runs

NUM_HASHES = 128
GRAM_WORDS = 5
_FOUND_AT_THRESHOLD = 0.95  # of the pairs that are just similar enough
_LARGEST = np.uint32(0xFFFFFFFF)
_NUM_BINS = 2048
_SKETCH_BITS = 4096
_EMPTY = np.uint64(2**64 - 1)
# A document's key under one of its bands.
BAND = np.dtype([("band", "u8"), ("key", "u8")])
# Two documents' keys.
PAIR = np.dtype([("left", "u8"), ("right", "u8")])
# The number of bins that are not empty, and the bits.
SKETCH = np.dtype([("filled", "u8"), ("bits", "u8", (_SKETCH_BITS // 64,))])
SIGNATURE = np.dtype([("key", "u8"), ("sketch", SKETCH)])
# In a larger group of equal bands not every pair is compared, only neighbors and all with the
# first: boilerplate of a million pages would make 10^12 pairs.
_ALL_PAIRS_UP_TO = 32
_PAIRS_TOGETHER = 8_000_000


def choose_bands(threshold: float) -> tuple[int, int]:
    """Choose the steepest curve that finds pairs at the threshold.

    Args:
        threshold: similarity, 0 to 1.

    Returns:
        How many bands, and minima in each.
    """
    rows = NUM_HASHES
    while rows > 1:
        chance = chance_of_candidate(threshold, NUM_HASHES // rows, rows)
        if chance >= _FOUND_AT_THRESHOLD:
            break
        rows -= 1
    return NUM_HASHES // rows, rows


def chance_of_candidate(similarity: float, bands: int, rows: int) -> float:
    """Return the probability that a pair shares a band.

    Args:
        similarity: 0 to 1.
        bands: number of bands.
        rows: minima in each.
    """
    return 1.0 - (1.0 - similarity**rows) ** bands


def signatures_of(
    words: np.ndarray, offsets: np.ndarray, documents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Make minima and sketches of documents with words.

    Args:
        words: uint64, hashes of words.
        offsets: int64 [documents + 1] into the words.
        documents: int64 [n], numbers.

    Returns:
        Minima, uint32 [n, NUM_HASHES], and SKETCH [n].
    """
    minima = np.full((len(documents), NUM_HASHES), _LARGEST)
    sketches = np.zeros(len(documents), SKETCH)
    filled, bits = sketches["filled"], sketches["bits"]
    _sign(words, offsets, documents, *_permutations(), minima, filled, bits)
    return minima, sketches


def estimated_similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Estimate the Jaccard similarity of pairs of sketches, 1 for equal ones.

    The number of differing bits tells how many bins differ (odd sketch, inverted); the number of
    filled bins tells how many grams there are. The similarity by which as many bins are equal is
    found by bisection.

    Args:
        left, right: SKETCH [n].

    Returns:
        float64 [n].
    """
    differing = np.bitwise_count(left["bits"] ^ right["bits"]).sum(axis=1, dtype=np.int64)
    differing = differing.clip(max=_SKETCH_BITS // 2 - 1)
    unequal = np.log1p(-2 * differing / _SKETCH_BITS) / np.log1p(-2 / _SKETCH_BITS)
    equal = (left["filled"] + right["filled"] - unequal) / 2 / _NUM_BINS
    filled = np.minimum([left["filled"], right["filled"]], _NUM_BINS - 0.5) / _NUM_BINS
    grams_per_bin = -np.log1p(-filled).sum(axis=0)
    # The similarity by which as many bins are equal: s of those with a gram of either document.
    low, high = np.zeros(len(left)), np.ones(len(left))
    for _ in range(30):
        middle = (low + high) / 2
        is_low = middle * -np.expm1(-grams_per_bin / (1 + middle)) < equal
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return high


def _permutations() -> tuple[np.ndarray, np.ndarray]:
    """Return factors and addends of the hash functions, uint32 [NUM_HASHES] each."""
    state = np.array([seed_key(0, "minhash")], np.uint64)
    numbers = np.array([next_bits(state) for _ in range(2 * NUM_HASHES)], np.uint64)
    factors, addends = (numbers >> np.uint64(32)).astype(np.uint32).reshape(2, NUM_HASHES)
    return factors | np.uint32(1), addends


@numba.njit(cache=True, nogil=True)
def _sign(words, offsets, documents, factors, addends, minima, filled, bits):
    """Set minima and sketches of documents.

    A hash function is multiply-add modulo 2^32 of the upper half of a gram's hash.

    Args:
        words: uint64, hashes of the words of all documents.
        offsets: int64 [all documents + 1] into `words`.
        documents: int64 [documents], numbers of those to sign.
        factors, addends: uint32 [NUM_HASHES], the hash functions.
        minima: uint32 [documents, NUM_HASHES], all at their maximum before.
        filled: [documents], number of filled bins, 0 before.
        bits: uint64 [documents, words of a sketch], 0 before.
    """
    bins = np.full(_NUM_BINS, _EMPTY)
    for place, document in enumerate(documents):
        own = minima[place]
        begin, end = offsets[document], offsets[document + 1]
        grams = np.zeros(max(end - begin - GRAM_WORDS, 0) + 1, np.uint64)
        for first in range(len(grams)):
            for word in range(begin + first, min(begin + first + GRAM_WORDS, end)):
                grams[first] = combine(grams[first], words[word])
            value = np.uint32(grams[first] >> np.uint64(32))
            for i in range(NUM_HASHES):
                own[i] = min(own[i], np.uint32(factors[i] * value + addends[i]))
            number = grams[first] % np.uint64(_NUM_BINS)
            bins[number] = min(bins[number], grams[first])
        for gram in grams:
            if bins[gram % np.uint64(_NUM_BINS)] == gram:
                bins[gram % np.uint64(_NUM_BINS)] = _EMPTY
                filled[place] += 1
                bit = mix64(gram) % np.uint64(_SKETCH_BITS)
                bits[place, bit // np.uint64(64)] ^= np.uint64(1) << bit % np.uint64(64)


@numba.njit(cache=True, nogil=True)
def band_keys(minima: np.ndarray, bands: int, rows: int) -> np.ndarray:
    """Return keys of bands, equal where all minima of a band are, different bands apart.

    Args:
        minima: uint32 [documents, NUM_HASHES].
        bands: number of bands.
        rows: minima in each.

    Returns:
        uint64 [documents, bands].
    """
    keys = np.empty((len(minima), bands), np.uint64)
    for document in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            value = mix64(np.uint64(band + 1))
            for row in range(band * rows, (band + 1) * rows):
                value = combine(value, np.uint64(minima[document, row]))
            keys[document, band] = value
    return keys


def pair_candidates(bands: np.ndarray) -> Iterator[np.ndarray]:
    """Pair documents of different keys that share a band.

    Args:
        bands: BAND, of all documents of a partition.

    Yields:
        PAIR, distinct and sorted, the lower key left, in parts of bounded size.
    """
    bands = sorted_distinct(bands)
    begins = np.flatnonzero(first_of_runs(bands["band"]))
    ends = np.append(begins[1:], len(bands))
    pairs_until = np.cumsum(_count_pairs(ends - begins))
    limits = np.arange(_PAIRS_TOGETHER, pairs_until[-1:].sum(), _PAIRS_TOGETHER)
    borders = np.unique([0, *np.searchsorted(pairs_until, limits) + 1, len(begins)])
    for first, last in itertools.pairwise(borders):
        pairs = np.empty(pairs_until[last - 1] - (pairs_until[first - 1] if first else 0), PAIR)
        groups = begins[first:last], ends[first:last]
        _fill_pairs(bands["key"], *groups, pairs["left"], pairs["right"])
        yield sorted_distinct(pairs)


def _count_pairs(sizes: np.ndarray) -> np.ndarray:
    """Return how many pairs groups of these sizes make, int64 [groups]."""
    return np.where(sizes <= _ALL_PAIRS_UP_TO, sizes * (sizes - 1) // 2, 2 * sizes - 3)


def sorted_distinct(rows: np.ndarray) -> np.ndarray:
    """Return distinct rows of two fields, sorted by both; np.unique is slow on records."""
    first, second = (rows[name] for name in rows.dtype.names or ())
    order = np.lexsort((second, first))
    rows = rows[order]
    return rows[first_of_runs(first[order]) | first_of_runs(second[order])]


@numba.njit(cache=True, nogil=True)
def _fill_pairs(keys, begins, ends, low, high):
    """Set the pairs of groups; see `_ALL_PAIRS_UP_TO`."""
    num_pairs = 0
    for group in range(len(begins)):
        begin, end = begins[group], ends[group]
        for right in range(begin + 1, end):
            if end - begin > _ALL_PAIRS_UP_TO and right > begin + 1:
                low[num_pairs], high[num_pairs] = keys[begin], keys[right]
                num_pairs += 1
            nearest = begin if end - begin <= _ALL_PAIRS_UP_TO else right - 1
            for left in range(nearest, right):
                low[num_pairs], high[num_pairs] = keys[left], keys[right]
                num_pairs += 1

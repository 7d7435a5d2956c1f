"""Near duplicates by MinHash (Broder 1997) of word 5-grams.

The similarity of two documents is the share of 5-grams that they have in common (Jaccard). There
are too many pairs to compare all, so:

1. Each document gets 128 minima: of each of 128 hash functions, the lowest value over its 5-grams.
   Two documents have an equal minimum with a probability that is their similarity.
2. Candidates share a band of minima (Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets",
   3.4). A pair of similarity s shares one with probability 1 - (1 - s^r)^b, for b bands of r
   minima. `choose_bands` takes the longest bands that find 95% of the pairs at the threshold.
3. Candidates are compared by sketches of 512 bytes: grams are spread over bins (one permutation
   hashing: Li, Owen, Zhang 2012), and the lowest of each bin flips a bit (odd sketch: Mitzenmacher,
   Pagh, Pham 2014). `estimated_similarity` turns the number of differing bits into a similarity.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
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
# All pairs of a group of equal bands are compared up to this size. Of a larger group only neighbors
# are compared, and all with the first: boilerplate of a million pages would make 10^12 pairs.
_ALL_PAIRS_UP_TO = 32
_PAIRS_TOGETHER = 8_000_000  # in memory at a time
# Steps of bisection: the estimate is exact to 2^-30.
_BISECTIONS = 30


def choose_bands(threshold: float) -> tuple[int, int]:
    """Choose the steepest curve that finds pairs at the threshold.

    Args:
        threshold: similarity, 0 to 1.

    Returns:
        The number of bands, and of minima in each.
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
    factors, addends = _permutations()
    _sign(
        words,
        offsets,
        documents,
        factors,
        addends,
        minima,
        sketches["filled"],
        sketches["bits"],
    )
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
    low = np.zeros(len(left))
    high = np.ones(len(left))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_low = middle * -np.expm1(-grams_per_bin / (1 + middle)) < equal
        low = np.where(is_low, middle, low)
        high = np.where(is_low, high, middle)
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
        begin = offsets[document]
        end = offsets[document + 1]
        grams = np.zeros(max(end - begin - GRAM_WORDS, 0) + 1, np.uint64)
        for first in range(len(grams)):
            for word in range(begin + first, min(begin + first + GRAM_WORDS, end)):
                grams[first] = combine(grams[first], words[word])
            value = np.uint32(grams[first] >> np.uint64(32))
            for function in range(NUM_HASHES):
                hashed = np.uint32(factors[function] * value + addends[function])
                own[function] = min(own[function], hashed)
            number = grams[first] % np.uint64(_NUM_BINS)
            bins[number] = min(bins[number], grams[first])
        # The lowest gram of each bin flips a bit, and its bin is emptied for the next document.
        for gram in grams:
            if bins[gram % np.uint64(_NUM_BINS)] == gram:
                bins[gram % np.uint64(_NUM_BINS)] = _EMPTY
                filled[place] += 1
                bit = mix64(gram) % np.uint64(_SKETCH_BITS)
                bits[place, bit // np.uint64(64)] ^= np.uint64(1) << bit % np.uint64(64)


@numba.njit(cache=True, nogil=True)
def band_keys(minima: np.ndarray, bands: int, rows: int) -> np.ndarray:
    """Return keys of bands: equal for equal minima in the same band, different between bands.

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
    # Cut into parts of whole groups, at the first group that reaches each multiple of the limit.
    pairs_before = offsets_of(_count_pairs(ends - begins))
    limits = np.arange(_PAIRS_TOGETHER, pairs_before[-1], _PAIRS_TOGETHER)
    cuts = np.searchsorted(pairs_before[1:], limits) + 1
    borders = np.unique([0, *cuts, len(begins)])
    for first, last in itertools.pairwise(borders):
        pairs = np.empty(pairs_before[last] - pairs_before[first], PAIR)
        _fill_pairs(
            bands["key"], begins[first:last], ends[first:last], pairs["left"], pairs["right"]
        )
        yield sorted_distinct(pairs)


def _count_pairs(sizes: np.ndarray) -> np.ndarray:
    """Return the number of pairs of groups of these sizes, int64 [groups]."""
    return np.where(sizes <= _ALL_PAIRS_UP_TO, sizes * (sizes - 1) // 2, 2 * sizes - 3)


def sorted_distinct(rows: np.ndarray) -> np.ndarray:
    """Return distinct rows of two fields, sorted by both; np.unique is slow on records."""
    first_field, second_field = rows.dtype.names or ()
    rows = rows[np.lexsort((rows[second_field], rows[first_field]))]
    return rows[first_of_runs(rows[first_field]) | first_of_runs(rows[second_field])]


@numba.njit(cache=True, nogil=True)
def _fill_pairs(keys, begins, ends, low, high):
    """Set the pairs of groups; see `_ALL_PAIRS_UP_TO`.

    Args:
        keys: uint64, keys of documents, rising within a group.
        begins, ends: int64 [groups], bounds of groups in `keys`.
        low, high: uint64 [pairs], to be set.
    """
    num_pairs = 0
    for group in range(len(begins)):
        begin = begins[group]
        end = ends[group]
        is_small = end - begin <= _ALL_PAIRS_UP_TO
        for right in range(begin + 1, end):
            if not is_small and right > begin + 1:
                low[num_pairs] = keys[begin]
                high[num_pairs] = keys[right]
                num_pairs += 1
            nearest = begin if is_small else right - 1
            for left in range(nearest, right):
                low[num_pairs] = keys[left]
                high[num_pairs] = keys[right]
                num_pairs += 1

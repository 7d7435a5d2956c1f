"""MinHash signatures of documents, and the bands that bring similar ones together.

The chance that two sets have the same minimum under a random permutation is their Jaccard
similarity (Broder 1997), so the fraction of equal minima of 128 permutations estimates it with a
standard error of sqrt(s (1 - s) / 128), 0.035 at s = 0.8. The sets are of word 5-grams; a document
of fewer words is one gram. A permutation is x -> a x + b modulo 2^32 with an odd a, on a mixed hash
of the gram.

Signatures are cut into b bands of r minima each; documents with an equal band are candidates
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4): a pair of similarity s is one with
the chance 1 - (1 - s^r)^b, an S-curve. Candidates are then compared by their whole signatures, so
only missed pairs matter: `choose_bands` takes the steepest curve that finds a pair at the threshold
with a chance of at least 0.95.

| threshold | r  | b  | found at the threshold | at threshold + 0.1 | candidates at 0.5 |
|-----------|----|----|------------------------|--------------------|-------------------|
| 0.7       | 5  | 25 | 0.990                  | 1.000              | 0.548             |
| 0.8       | 7  | 18 | 0.986                  | 1.000              | 0.132             |
| 0.9       | 12 | 10 | 0.964                  | 1.000              | 0.002             |
"""

from __future__ import annotations

import numba
import numpy as np

from bert_tf.base.kernels import mix64
from bert_tf.data.examples.random_numbers import combine, next_bits, seed_key

NUM_HASHES = 128
GRAM_WORDS = 5
_FOUND_AT_THRESHOLD = 0.95
_LARGEST = np.uint32(0xFFFFFFFF)


def choose_bands(threshold: float) -> tuple[int, int]:
    """How many bands, and minima in each, for pairs of at least this similarity."""
    rows = NUM_HASHES
    while rows > 1 and chance_of_candidate(threshold, NUM_HASHES // rows, rows) < (
        _FOUND_AT_THRESHOLD
    ):
        rows -= 1
    return NUM_HASHES // rows, rows


def chance_of_candidate(similarity: float, bands: int, rows: int) -> float:
    """The S-curve: the chance that a pair of some similarity has an equal band."""
    return 1.0 - (1.0 - similarity**rows) ** bands


def signatures_of(words: np.ndarray, offsets: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """MinHash signatures.

    Args:
        words: uint64, hashes of the words of all documents one after the other.
        offsets: int64 [documents + 1] into `words`.
        documents: int64 [n], which documents.

    Returns:
        uint32 [n, NUM_HASHES]; of a document without words all are the largest number.
    """
    signatures = np.empty((len(documents), NUM_HASHES), np.uint32)
    _sign(words, offsets, documents, *_permutations(), signatures)
    return signatures


def band_keys(signatures: np.ndarray, bands: int, rows: int) -> np.ndarray:
    """uint64 [documents, bands]: equal where all minima of a band are, different bands apart."""
    keys = np.empty((len(signatures), bands), np.uint64)
    _key_bands(signatures, rows, keys)
    return keys


def estimated_similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """float64 [n]: the fraction of equal minima in pairs of signatures, [n, NUM_HASHES] each."""
    return np.count_nonzero(left == right, axis=1) / NUM_HASHES


def _permutations() -> tuple[np.ndarray, np.ndarray]:
    state = np.array([seed_key(0, "minhash")], np.uint64)
    numbers = np.array([next_bits(state) for _ in range(2 * NUM_HASHES)], np.uint64)
    factors, addends = (numbers >> np.uint64(32)).astype(np.uint32).reshape(2, NUM_HASHES)
    return factors | np.uint32(1), addends


@numba.njit(cache=True, nogil=True)
def _sign(words, offsets, documents, factors, addends, signatures):
    for place in range(len(documents)):
        minima = signatures[place]
        minima[:] = _LARGEST
        begin, end = offsets[documents[place]], offsets[documents[place] + 1]
        if begin == end:
            continue
        for first in range(begin, max(end - GRAM_WORDS, begin) + 1):
            gram = np.uint64(0)
            for word in range(first, min(first + GRAM_WORDS, end)):
                gram = combine(gram, words[word])
            value = np.uint32(gram >> np.uint64(32))
            for i in range(NUM_HASHES):
                minima[i] = min(minima[i], np.uint32(factors[i] * value + addends[i]))


@numba.njit(cache=True, nogil=True)
def _key_bands(signatures, rows, keys):
    for document in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            value = mix64(np.uint64(band + 1))
            for row in range(band * rows, (band + 1) * rows):
                value = combine(value, np.uint64(signatures[document, row]))
            keys[document, band] = value

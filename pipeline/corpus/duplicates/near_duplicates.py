"""Near duplicates by MinHash (Broder 1997) of word 5-grams, with 128 permutations.

Candidates share a band of minima (Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4);
a pair of similarity s does with probability 1 - (1 - s^r)^b, for b bands of r minima. Candidates
are compared by whole signatures, with a standard error of sqrt(s (1 - s) / 128).
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterable

import numba
import numpy as np

from bert_tf.base.kernels import combine, mix64, next_bits, seed_key
from pipeline.corpus.duplicates.occurrences import (
    KEPT,
    Kept,
    Occurrences,
    first_of_runs,
    merge_numbered,
)

NUM_HASHES = 128
GRAM_WORDS = 5
_FOUND_AT_THRESHOLD = 0.95
_LARGEST = np.uint32(0xFFFFFFFF)
# A document's key under one of its bands.
BAND = np.dtype([("band", "u8"), ("key", "u8")])
# Two documents' keys, the lower first.
PAIR = np.dtype([("low", "u8"), ("high", "u8")])
SIGNATURE = np.dtype([("key", "u8"), ("minima", "u4", (NUM_HASHES,))])
NODE = np.dtype(
    [
        ("key", "u8"),
        ("identity", "u8"),
        ("line", "i8"),
        ("source", "i8"),
        ("minima", "u4", (NUM_HASHES,)),
    ]
)
# In a larger group of equal bands not every pair is compared, only neighbors and all with the
# first: boilerplate of a million pages would make 10^12 pairs.
_ALL_PAIRS_UP_TO = 32
_PAIRS_CHUNK_SIZE = 100_000


def choose_bands(threshold: float) -> tuple[int, int]:
    """How many bands, and minima in each: the steepest curve that finds pairs at the threshold."""
    rows = NUM_HASHES
    while rows > 1 and chance_of_candidate(threshold, NUM_HASHES // rows, rows) < (
        _FOUND_AT_THRESHOLD
    ):
        rows -= 1
    return NUM_HASHES // rows, rows


def chance_of_candidate(similarity: float, bands: int, rows: int) -> float:
    return 1.0 - (1.0 - similarity**rows) ** bands


def signatures_of(words: np.ndarray, offsets: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """uint32 [n, NUM_HASHES] of n documents (int64 numbers); the largest number without words."""
    return _sign(words, offsets, documents, *_permutations())


def estimated_similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """float64 [n]: the fraction of equal minima in pairs of signatures, [n, NUM_HASHES] each."""
    return np.count_nonzero(left == right, axis=1) / NUM_HASHES


def _permutations() -> tuple[np.ndarray, np.ndarray]:
    state = np.array([seed_key(0, "minhash")], np.uint64)
    numbers = np.array([next_bits(state) for _ in range(2 * NUM_HASHES)], np.uint64)
    factors, addends = (numbers >> np.uint64(32)).astype(np.uint32).reshape(2, NUM_HASHES)
    return factors | np.uint32(1), addends


@numba.njit(cache=True, nogil=True)
def _sign(words, offsets, documents, factors, addends):
    signatures = np.empty((len(documents), NUM_HASHES), np.uint32)
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
    return signatures


@numba.njit(cache=True, nogil=True)
def band_keys(signatures: np.ndarray, bands: int, rows: int) -> np.ndarray:
    """uint64 [documents, bands]: equal where all minima of a band are, different bands apart."""
    keys = np.empty((len(signatures), bands), np.uint64)
    for document in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            value = mix64(np.uint64(band + 1))
            for row in range(band * rows, (band + 1) * rows):
                value = combine(value, np.uint64(signatures[document, row]))
            keys[document, band] = value
    return keys


def pair_candidates(bands: np.ndarray) -> np.ndarray:
    """PAIR, sorted and distinct: documents of different keys that share a BAND, of all bands."""
    bands = _sorted_distinct(bands)
    begins = np.flatnonzero(first_of_runs(bands["band"]))
    ends = np.append(begins[1:], len(bands))
    pairs = np.empty(_count_pairs(begins, ends), PAIR)
    _fill_pairs(bands["key"], begins, ends, pairs["low"], pairs["high"])
    return _sorted_distinct(pairs)


def _sorted_distinct(rows: np.ndarray) -> np.ndarray:
    """Distinct rows of two fields, sorted by both; np.unique is slow on records."""
    first, second = (rows[name] for name in rows.dtype.names or ())
    order = np.lexsort((second, first))
    rows = rows[order]
    return rows[first_of_runs(first[order]) | first_of_runs(second[order])]


@numba.njit(cache=True, nogil=True)
def _count_pairs(begins, ends):
    count = 0
    for group in range(len(begins)):
        size = ends[group] - begins[group]
        count += size * (size - 1) // 2 if size <= _ALL_PAIRS_UP_TO else 2 * size - 3
    return count


@numba.njit(cache=True, nogil=True)
def _fill_pairs(keys, begins, ends, low, high):
    found = 0
    for group in range(len(begins)):
        begin, end = begins[group], ends[group]
        for right in range(begin + 1, end):
            if end - begin > _ALL_PAIRS_UP_TO and right > begin + 1:
                low[found], high[found] = keys[begin], keys[right]
                found += 1
            nearest = begin if end - begin <= _ALL_PAIRS_UP_TO else right - 1
            for left in range(nearest, right):
                low[found], high[found] = keys[left], keys[right]
                found += 1


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Candidates: NODE [n], one row per key, whose `source` is a number in `files`."""

    rows: np.ndarray
    files: list[str]


def select_nodes(occurrences: Occurrences, signatures: np.ndarray, selected: np.ndarray) -> Nodes:
    """The records of `selected` keys (rising), from sorted occurrences of a whole partition."""
    firsts = occurrences.rows[occurrences.is_first()]
    firsts = firsts[np.searchsorted(firsts["key"], selected)]
    keys, places = np.unique(signatures["key"], return_index=True)
    rows = np.empty(len(selected), NODE)
    rows["key"] = selected
    rows["identity"] = firsts["identity"]
    rows["line"] = firsts["line"]
    rows["minima"] = signatures["minima"][places[np.searchsorted(keys, selected)]]
    files = sorted({source for source, _ in occurrences.blocks})
    numbers = {source: number for number, source in enumerate(files)}
    of_blocks = np.array([numbers[source] for source, _ in occurrences.blocks], np.int64)
    rows["source"] = of_blocks[firsts["block"]]
    return Nodes(rows, files)


def merge_nodes(parts: Iterable[bytes]) -> Nodes:
    loaded: list[Nodes] = [pickle.loads(part) for part in parts]
    files, rows = merge_numbered([(each.files, each.rows) for each in loaded], "source", NODE)
    return Nodes(rows[np.argsort(rows["key"])], files)


def choose_kept(nodes: Nodes, pairs: np.ndarray, threshold: float) -> Kept:
    """Keeps the lowest identity of each component that PAIRs of enough similarity connect."""
    rows = nodes.rows
    pairs = _sorted_distinct(pairs)
    left = np.searchsorted(rows["key"], pairs["low"])
    right = np.searchsorted(rows["key"], pairs["high"])
    is_similar = _similarities(rows["minima"], left, right) >= threshold
    # By identity, so that a component's lowest number is the document that stays.
    order = np.lexsort((rows["key"], rows["identity"]))
    ranks = np.empty(len(rows), np.int64)
    ranks[order] = np.arange(len(rows))
    roots = np.arange(len(rows))
    _connect(ranks[left[is_similar]], ranks[right[is_similar]], roots)
    stays = order[roots[ranks]]
    goes = np.flatnonzero(stays != np.arange(len(rows)))
    stays = stays[goes]
    kept = np.empty(len(goes), KEPT)
    kept["key"] = rows["key"][goes]
    for name in ("identity", "source", "line"):
        kept[name] = rows[name][stays]
    kept["similarity"] = _similarities(rows["minima"], goes, stays)
    return Kept(kept, nodes.files)


def _similarities(minima: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    parts = [
        estimated_similarity(minima[left[start:stop]], minima[right[start:stop]])
        for start in range(0, len(left), _PAIRS_CHUNK_SIZE)
        for stop in [start + _PAIRS_CHUNK_SIZE]
    ]
    return np.concatenate([np.empty(0), *parts])


@numba.njit(cache=True, nogil=True)
def _connect(left, right, roots):
    """Union-find: `roots` begins as 0, 1, 2 … and ends as the lowest number of each component."""
    for edge in range(len(left)):
        a, b = _root(roots, left[edge]), _root(roots, right[edge])
        roots[max(a, b)] = min(a, b)
    for node in range(len(roots)):
        roots[node] = _root(roots, node)


@numba.njit(cache=True, nogil=True)
def _root(roots, node):
    while roots[node] != node:
        roots[node] = roots[roots[node]]
        node = roots[node]
    return node

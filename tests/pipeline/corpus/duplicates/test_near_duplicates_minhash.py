"""Minima and sketches against the Jaccard similarity of the sets they stand for."""

import random

import numpy as np
import pytest

from pipeline.corpus.duplicates.folding import fold_block
from pipeline.corpus.duplicates.near_duplicates import (
    GRAM_WORDS,
    NUM_HASHES,
    band_keys,
    chance_of_candidate,
    choose_bands,
    estimated_similarity,
    signatures_of,
)


@pytest.fixture
def sign(block_of):
    def signatures(texts):
        folded = fold_block(block_of(*([[text]] for text in texts)))
        return signatures_of(folded.words, folded.document_offsets, np.arange(len(texts)))

    return signatures


def grams(text):
    words = text.lower().split()
    return {tuple(words[i : i + GRAM_WORDS]) for i in range(max(len(words) - GRAM_WORDS, 0) + 1)}


def jaccard(left, right):
    return len(grams(left) & grams(right)) / len(grams(left) | grams(right))


def pairs_of_texts(source, count):
    for _ in range(count):
        words = [str(source.randrange(10**6)) for _ in range(source.randrange(30, 300))]
        changed = list(words)
        for _ in range(source.randrange(0, 15)):
            changed[source.randrange(len(words))] = "other"
        yield " ".join(words), " ".join(changed)


def sketches_of(sign, pairs):
    return (sign([pair[side] for pair in pairs])[1] for side in (0, 1))


def test_sketches_estimate_the_jaccard_similarity(sign):
    pairs = list(pairs_of_texts(random.Random(0), 400))
    exact = np.array([jaccard(*pair) for pair in pairs])
    estimated = estimated_similarity(*sketches_of(sign, pairs))
    assert abs((estimated - exact).mean()) < 0.002
    assert (estimated - exact).std() < 0.012  # 128 minima: 0.035
    assert (estimated[exact == 1] == 1).all()


@pytest.mark.parametrize("length", [1, 6, 3000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_sketches_estimate_it_for_any_length_and_similarity(sign, length):
    original = [f"w{number}" for number in range(length)]
    for changed in (0, 0.05, 0.3, 0.7, 1):
        copy = [f"x{word}" for word in original[: round(changed * length)]]
        pair = (" ".join(original), " ".join([*copy, *original[len(copy) :]]))
        (estimated,) = estimated_similarity(*sketches_of(sign, [pair]))
        exact = jaccard(*pair)
        assert estimated == pytest.approx(exact, abs=0.03 if exact > 0.6 else 0.15)


def test_short_documents_are_one_gram(sign):
    minima, sketches = sign(["a b", "A, b!", "a c", "a b c d e", "a b c d e f"])
    assert (minima[0] == minima[1]).all()
    assert (minima[0] != minima[2]).mean() > 0.99
    similar = estimated_similarity(sketches[[0, 0, 3]], sketches[[1, 2, 4]])
    assert similar == pytest.approx([1, 0, 0.5], abs=0.001)


def test_bands_find_pairs_as_the_curve_says(sign):
    bands, rows = choose_bands(0.8)
    assert (bands, rows) == (18, 7)
    pairs = list(pairs_of_texts(random.Random(1), 400))
    left, right = (sign([pair[side] for pair in pairs])[0] for side in (0, 1))
    found = (band_keys(left, bands, rows) == band_keys(right, bands, rows)).any(axis=1)
    chances = [chance_of_candidate(jaccard(*pair), bands, rows) for pair in pairs]
    spread = np.sqrt(sum(chance * (1 - chance) for chance in chances))
    assert abs(found.sum() - sum(chances)) < 4 * spread


def test_bands_of_different_places_are_apart():
    keys = band_keys(np.zeros((1, NUM_HASHES), np.uint32), 18, 7)
    assert len(set(keys[0].tolist())) == 18


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_a_pair_at_the_threshold_is_found(threshold):
    bands, rows = choose_bands(threshold)
    assert bands * rows <= NUM_HASHES
    assert chance_of_candidate(threshold, bands, rows) >= 0.95

"""Gopher drops documents where repeated 5- to 10-grams of words have many characters."""

from __future__ import annotations

from functools import partial

import numpy as np

from bert_tf.base.compiled import numba
from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_repetition
from pipeline.corpus.curation.words import find_gram, gram_at, new_table


def repeated_grams(text: MeasuredText, *, size: int) -> np.ndarray:
    """Return the share of repeated n-grams in the characters of a document.

    Spaces do not count, and overlapping n-grams count each of their words once.

    Args:
        text: the documents.
        size: words of n-grams.
    """
    words, bounds = text.words, text.document_words
    characters = np.zeros(text.num_documents)
    _count_repeated(words.hashes, words.characters, bounds, size, *new_table(bounds), characters)
    return ratio(characters, text.num_characters)


@numba.njit(cache=True, nogil=True)
def _count_repeated(hashes, characters, bounds, size, keys, owners, counted):
    """Add up the characters of repeated n-grams of each document.

    Args:
        hashes, characters: of words.
        bounds: int64 [documents + 1], offsets into the words.
        size: words of n-grams.
        keys, owners: of `new_table`.
        counted: float64 [documents], to be added to.
    """
    for document in range(len(counted)):
        place = bounds[document]
        last = bounds[document + 1] - size
        while place <= last:
            _, is_new = find_gram(gram_at(hashes, place, size), document, keys, owners)
            if not is_new:
                counted[document] += characters[place : place + size].sum()
            place += 1 if is_new else size


_THRESHOLDS = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
RULES = [
    gopher_repetition(
        f"gopher_max_repeated_{size}_grams", partial(repeated_grams, size=size), maximum=threshold
    )
    for size, threshold in _THRESHOLDS
]

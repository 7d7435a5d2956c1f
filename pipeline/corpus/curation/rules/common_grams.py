"""Gopher drops documents whose most frequent 2-, 3- or 4-gram of words has many characters."""

from __future__ import annotations

from functools import partial

import numpy as np

from bert_tf.base.compiled import numba
from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_repetition
from pipeline.corpus.curation.words import find_gram, gram_at, new_table


def most_common_gram(text: MeasuredText, *, size: int) -> np.ndarray:
    """Return the share of the most frequent n-gram in the characters of a document.

    All its occurrences count, with spaces between their words.

    Args:
        text: the documents.
        size: words of n-grams.
    """
    words, bounds = text.words, text.document_words
    characters = np.zeros(text.num_documents)
    _count_most_common(words.hashes, words.characters, bounds, size, *new_table(bounds), characters)
    return ratio(characters, text.num_characters)


@numba.njit(cache=True, nogil=True)
def _count_most_common(hashes, characters, bounds, size, keys, owners, counted):
    """Set the characters of the most frequent n-gram of each document.

    Args:
        hashes, characters: of words.
        bounds: int64 [documents + 1], offsets into the words.
        size: words of n-grams.
        keys, owners: of `new_table`.
        counted: float64 [documents], to be set.
    """
    counts = np.zeros(len(keys), np.int64)
    for document in range(len(counted)):
        first = -1
        most = 0
        begin = bounds[document]
        last = bounds[document + 1] - size
        # The first pass counts; the second finds the first of equally frequent grams.
        for is_second_pass in (False, True):
            for place in range(begin, last + 1):
                slot, is_new = find_gram(gram_at(hashes, place, size), document, keys, owners)
                if is_second_pass:
                    if counts[slot] == most:
                        first = place
                        break
                else:
                    counts[slot] = 1 if is_new else counts[slot] + 1
                    most = max(most, counts[slot])
        if first >= 0:
            counted[document] = most * (characters[first : first + size].sum() + size - 1)


RULES = [
    gopher_repetition(
        f"gopher_max_common_{size}_gram", partial(most_common_gram, size=size), maximum=threshold
    )
    for size, threshold in ((2, 0.20), (3, 0.18), (4, 0.16))
]

"""Gopher drops documents of repeated paragraphs, which blank lines separate."""

from __future__ import annotations

import numpy as np

from bert_tf.base.kernels import combine_keys
from pipeline.corpus.curation.measures import MeasuredText, find_repeats, ratio
from pipeline.corpus.curation.rule import gopher_repetition


def repeated_paragraphs(text: MeasuredText) -> np.ndarray:
    return _repeated(text)[0]


def repeated_characters(text: MeasuredText) -> np.ndarray:
    return _repeated(text)[1]


def _repeated(text: MeasuredText) -> tuple[np.ndarray, np.ndarray]:
    """Fractions of the paragraphs, and of the characters."""
    if not len(text.starts):
        return (np.zeros(text.num_documents),) * 2
    first_lines = np.flatnonzero(text.feeds != 1)
    places = np.arange(len(text.starts)) - np.repeat(
        first_lines, np.diff(first_lines, append=len(text.starts))
    )
    # Sums of hashes that depend on the place are equal for equal lines in the same order.
    keys = np.add.reduceat(combine_keys(text.line_hashes, places.astype(np.uint64)), first_lines)
    characters = np.add.reduceat(text.line_characters + (places > 0), first_lines)
    documents = text.documents[first_lines]
    is_repeat = find_repeats(documents, keys)
    paragraphs, repeats, length = (
        np.bincount(documents, weights, text.num_documents)
        for weights in (np.ones(len(keys)), is_repeat, characters * is_repeat)
    )
    return ratio(repeats, paragraphs), ratio(length, text.num_characters)


MAX_PARAGRAPHS = gopher_repetition(
    "gopher_max_repeated_paragraphs", repeated_paragraphs, maximum=0.3
)
MAX_CHARACTERS = gopher_repetition(
    "gopher_max_repeated_paragraph_characters", repeated_characters, maximum=0.2
)

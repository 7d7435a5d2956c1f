"""Gopher drops documents of repeated lines, and of repeated paragraphs, by number and length."""

from __future__ import annotations

from functools import partial

import numpy as np

from bert_tf.base.kernels import combine_keys
from pipeline.corpus.curation.measures import MeasuredText, find_repeats, ratio
from pipeline.corpus.curation.rule import gopher_repetition


def repeated_lines(text: MeasuredText) -> np.ndarray:
    """Return the share of lines that equal an earlier line of their document."""
    return ratio(text.total(text.is_repeated_line), text.num_lines)


def line_characters(text: MeasuredText) -> np.ndarray:
    """Return the share of repeated lines in the characters of a document."""
    return ratio(text.total(text.line_characters * text.is_repeated_line), text.num_characters)


def repeated_paragraphs(text: MeasuredText, *, by_length: bool) -> np.ndarray:
    """Return the share of paragraphs, which blank lines separate, that equal an earlier one.

    Args:
        text: the documents.
        by_length: whether to count characters instead of paragraphs.
    """
    if not len(text.starts):
        return np.zeros(text.num_documents)
    first_lines = np.flatnonzero(text.feeds != 1)
    places = np.arange(len(text.starts)) - np.repeat(
        first_lines, np.diff(first_lines, append=len(text.starts))
    )
    # Sums of hashes that depend on the place are equal for equal lines in the same order.
    keys = np.add.reduceat(combine_keys(text.line_hashes, places.astype(np.uint64)), first_lines)
    documents = text.documents[first_lines]
    is_repeat = find_repeats(documents, keys)
    if by_length:
        lengths = np.add.reduceat(text.line_characters + (places > 0), first_lines)
        whole = text.num_characters
        weights = lengths * is_repeat
    else:
        whole = np.bincount(documents, minlength=text.num_documents)
        weights = is_repeat
    return ratio(np.bincount(documents, weights, text.num_documents), whole)


RULES = [
    gopher_repetition(f"gopher_max_repeated_{name}", measure, maximum=threshold)
    for name, measure, threshold in (
        ("paragraphs", partial(repeated_paragraphs, by_length=False), 0.3),
        ("paragraph_characters", partial(repeated_paragraphs, by_length=True), 0.2),
        ("lines", repeated_lines, 0.3),
        ("line_characters", line_characters, 0.2),
    )
]

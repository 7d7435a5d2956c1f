"""Gopher drops documents of hash signs and ellipses, of lists, and of lines that are cut off."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_quality


def hashes_per_word(text: MeasuredText) -> np.ndarray:
    """Return hash signs per word."""
    return ratio(text.total(text.occurrences("#")), text.num_words)


def ellipses_per_word(text: MeasuredText) -> np.ndarray:
    """Return ellipses, as three full stops or one character, per word."""
    ellipses = text.occurrences("...") + text.occurrences("\u2026")
    return ratio(text.total(ellipses), text.num_words)


def bullet_lines(text: MeasuredText) -> np.ndarray:
    """Return the share of lines that begin with a bullet; blank lines count."""
    return text.total(text.begin_with("\u2022", "-")) / (text.num_feeds + 1)


def ellipsis_lines(text: MeasuredText) -> np.ndarray:
    """Return the share of lines that end in an ellipsis; blank lines count."""
    return text.total(text.end_with("...", "\u2026")) / (text.num_feeds + 1)


RULES = [
    gopher_quality("gopher_max_hashes", hashes_per_word, maximum=0.1),
    gopher_quality("gopher_max_ellipses", ellipses_per_word, maximum=0.1),
    gopher_quality("gopher_max_bullet_lines", bullet_lines, maximum=0.9),
    gopher_quality("gopher_max_ellipsis_lines", ellipsis_lines, maximum=0.3),
]

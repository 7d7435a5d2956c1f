"""Gopher keeps documents of 50 to 100,000 words; marks do not count."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.rule import gopher_quality
from pipeline.corpus.curation.words import HAS_MORE_THAN_MARKS

_MOST = 1e9


def count_words(text: MeasuredText) -> np.ndarray:
    return text.total_of_words(text.words.kinds & HAS_MORE_THAN_MARKS > 0)


MIN_WORDS = gopher_quality("gopher_min_words", count_words, minimum=50, highest=_MOST)
MAX_WORDS = gopher_quality("gopher_max_words", count_words, maximum=100_000, highest=_MOST)

"""Gopher keeps documents where 80% of the words and marks have a letter."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_quality
from pipeline.corpus.curation.words import HAS_LETTER


def words_with_letters(text: MeasuredText) -> np.ndarray:
    return ratio(text.total_of_words(text.words.kinds & HAS_LETTER > 0), text.num_words)


RULE = gopher_quality("gopher_min_letter_words", words_with_letters, minimum=0.8)

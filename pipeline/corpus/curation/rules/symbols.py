"""Gopher drops documents of more than one hash sign or ellipsis in ten words."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_quality


def hashes_per_word(text: MeasuredText) -> np.ndarray:
    return ratio(text.total(text.occurrences("#")), text.num_words)


def ellipses_per_word(text: MeasuredText) -> np.ndarray:
    found = text.occurrences("...") + text.occurrences("\u2026")
    return ratio(text.total(found), text.num_words)


MAX_HASHES = gopher_quality("gopher_max_hashes", hashes_per_word, maximum=0.1)
MAX_ELLIPSES = gopher_quality("gopher_max_ellipses", ellipses_per_word, maximum=0.1)

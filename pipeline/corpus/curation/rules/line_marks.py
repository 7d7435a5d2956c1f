"""Gopher drops documents of lists, and of lines that end in an ellipsis."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.rule import gopher_quality


def bullet_lines(text: MeasuredText) -> np.ndarray:
    """As a fraction of all lines; blank ones count."""
    return text.total(text.begin_with("\u2022", "-")) / (text.num_feeds + 1)


def ellipsis_lines(text: MeasuredText) -> np.ndarray:
    return text.total(text.end_with("...", "\u2026")) / (text.num_feeds + 1)


MAX_BULLETS = gopher_quality("gopher_max_bullet_lines", bullet_lines, maximum=0.9)
MAX_ELLIPSES = gopher_quality("gopher_max_ellipsis_lines", ellipsis_lines, maximum=0.3)

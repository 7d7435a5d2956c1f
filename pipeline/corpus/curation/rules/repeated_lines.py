"""Gopher drops documents of repeated lines, by their number and by their characters."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import gopher_repetition


def repeated_lines(text: MeasuredText) -> np.ndarray:
    return ratio(text.total(text.is_repeated_line), text.num_lines)


def repeated_characters(text: MeasuredText) -> np.ndarray:
    return ratio(text.total(text.line_characters * text.is_repeated_line), text.num_characters)


MAX_LINES = gopher_repetition("gopher_max_repeated_lines", repeated_lines, maximum=0.3)
MAX_CHARACTERS = gopher_repetition(
    "gopher_max_repeated_line_characters", repeated_characters, maximum=0.2
)

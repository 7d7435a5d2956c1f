"""FineWeb drops documents of short, repeated or unfinished lines, and of lists.

Penedo et al. 2024, section 3.6; datatrove's FineWebQualityFilter is the reference.
"""

from __future__ import annotations

import functools

import numpy as np

from pipeline.corpus.characters import TERMINATOR, WIDE_TERMINATOR, sentence_table
from pipeline.corpus.curation.measures import MeasuredText, ratio
from pipeline.corpus.curation.rule import fineweb

_SHORT = 30  # characters
# Of Unicode's sentence terminals, beside the sentence splitter's: Burmese, Khmer and Kawi marks.
_OTHER_TERMINALS = (0x104A, 0x17D6, 0x17D9, 0x17DA, 0x11F43, 0x11F44)
_ELLIPSIS = 0x2026


@functools.cache
def _is_terminal() -> np.ndarray:
    """Return which code points end a sentence, bool [NUM_CODE_POINTS]."""
    table = np.isin(sentence_table(), (TERMINATOR, WIDE_TERMINATOR))
    table[list(_OTHER_TERMINALS)] = True
    table[_ELLIPSIS] = False
    return table


def finished_lines(text: MeasuredText) -> np.ndarray:
    """Return the share of lines that end in a terminal mark of any script; an ellipsis is none."""
    return ratio(text.total(_is_terminal()[text.last_characters]), text.num_lines)


def short_lines(text: MeasuredText) -> np.ndarray:
    """Return the share of lines of up to 30 characters."""
    return ratio(text.total(text.line_characters <= _SHORT), text.num_lines)


def repeated_characters(text: MeasuredText) -> np.ndarray:
    """Return the share of repeated lines in the characters of all lines."""
    repeated = text.total(text.line_characters * text.is_repeated_line)
    return ratio(repeated, text.total(text.line_characters))


def feeds_per_word(text: MeasuredText) -> np.ndarray:
    """Return line feeds per word: a list has nearly one."""
    return ratio(text.num_feeds, text.num_words)


RULES = [
    fineweb("fineweb_min_finished_lines", finished_lines, minimum=0.12),
    fineweb("fineweb_max_short_lines", short_lines, maximum=0.67),
    fineweb("fineweb_max_repeated_characters", repeated_characters, maximum=0.01),
    fineweb("fineweb_max_line_feeds", feeds_per_word, maximum=0.3),
]

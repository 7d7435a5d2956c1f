"""What the ends of lines tell: whether lines end at a margin, and whether sentences go on."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from pipeline.corpus.characters import (
    CLOSER,
    LOWER,
    QUOTE,
    TERMINATOR,
    WIDE_TERMINATOR,
    decode,
    sentence_table,
)

FEWEST_BREAKS = 3  # fewer line ends prove nothing
# Columns. Nobody wraps prose narrower than the first or wider than the last; lines wider than the
# second are paragraphs or sentences, whatever the next line begins with.
NARROWEST_MARGIN = 30
_USUAL_MARGIN = 120
WIDEST_MARGIN = 200
# Sentences go on if at least this share of the breaks does …
_GOING_ON = 1 / 5
# … and lines in lower case follow open lines this much more often than other lines.
_MORE_OFTEN = 3 / 2
_FIRST_WIDE_BYTE = 0xE3  # of UTF-8: of characters from U+3000 on, which have two columns
# Scripts whose lines are broken between any characters, but a few marks.
_FIRST_IDEOGRAPH = 0x2E80
_FIRST_HANGUL = 0xAC00
_UNBROKEN = 4  # columns that may not be broken
_COMMAS = tuple(map(ord, ",;\u060c\u061b\u1363\u3001\uff0c\uff1b"))
_ITEM_MARKS = tuple(map(ord, "*+-\u2022"))


class LineEnds(NamedTuple):
    """What the ends of lines tell about them, [lines] each; wide characters have two columns."""

    widths: np.ndarray
    next_widths: np.ndarray  # with the first word of the next line
    is_break: np.ndarray  # whether another line of the same block follows
    is_open: np.ndarray  # such a line without a mark that ends a sentence
    is_continued: np.ndarray  # of them, one with a comma, or that goes on in lower case
    begins_lower: np.ndarray  # in lower case, though no such line precedes


def measure_lines(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray, is_break: np.ndarray
) -> LineEnds:
    """Measures lines of clean text; `is_break` is bool [lines - 1]."""
    is_break = np.append(is_break, False)
    table = sentence_table()
    widths, is_ended, has_comma, is_lower, first_words = _measure(data, starts, stops, table)
    is_open = is_break & ~is_ended
    is_usual = (widths >= NARROWEST_MARGIN) & (widths <= _USUAL_MARGIN)
    return LineEnds(
        widths=widths,
        next_widths=widths + 1 + np.append(first_words[1:], 0),
        is_break=is_break,
        is_open=is_open,
        is_continued=is_open & is_usual & (has_comma | np.append(is_lower[1:], False)),
        begins_lower=is_lower & ~np.append(False, is_open[:-1]),
    )


def goes_on(lines, breaks, open_breaks, continued_breaks, lower_begins):
    """Whether sentences go on across line ends: more lines in lower case follow open ones.

    Where any line may begin in lower case (chats, verse), lower case says nothing, so its share
    after open lines is compared with that of the other lines.

    Args:
        lines, breaks, open_breaks, continued_breaks, lower_begins: counts as in `Sketch`; numbers,
            or int64 [documents] each.

    Returns:
        A bool, or bool [documents].
    """
    is_cased = continued_breaks * (lines - open_breaks) > _MORE_OFTEN * lower_begins * open_breaks
    return is_cased & (continued_breaks >= _GOING_ON * breaks)


@numba.njit(cache=True, nogil=True)
def _measure(data, starts, stops, table):
    """Columns of lines and first words, and whether a mark ends and lower case begins lines."""
    count = len(starts)
    widths = np.zeros(count, np.int64)
    is_ended = np.zeros(count, np.bool_)
    has_comma = np.zeros(count, np.bool_)
    is_lower = np.zeros(count, np.bool_)
    first_words = np.zeros(count, np.int64)
    for line in range(count):
        start, stop = starts[line], stops[line]
        if start == stop:  # nothing, or not UTF-8
            continue
        end = stop
        while end > start:
            end -= 1
            while end > start and data[end] & 0xC0 == 0x80:
                end -= 1
            last = decode(data, end)[0]
            kind = table[last]
            if kind != CLOSER and kind != QUOTE:
                has_comma[line] = last in _COMMAS
                is_ended[line] = kind in (TERMINATOR, WIDE_TERMINATOR)
                break
        word_stop = start
        while word_stop < stop and data[word_stop] != 32:
            word_stop += 1
        widths[line] = _columns(data, start, stop)
        first = decode(data, start)[0]
        is_lower[line] = table[first] == LOWER
        first_words[line] = _columns(data, start, word_stop)
        if _FIRST_IDEOGRAPH <= first < _FIRST_HANGUL:
            first_words[line] = min(first_words[line], _UNBROKEN)
        elif first_words[line] == 1 and first in _ITEM_MARKS:
            first_words[line] = -WIDEST_MARGIN  # an item is a paragraph of its own
    return widths, is_ended, has_comma, is_lower, first_words


@numba.njit(cache=True)
def _columns(data, start, stop):
    columns = 0
    for position in range(start, stop):
        columns += (data[position] & 0xC0 != 0x80) + (data[position] >= _FIRST_WIDE_BYTE)
    return columns

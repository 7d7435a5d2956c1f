"""Signs of the ends of lines: whether lines end at a margin, and whether sentences continue."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from bert_tf.base.compiled import numba
from pipeline.corpus.characters import (
    CLOSER,
    FIRST_WIDE_BYTE,
    LOWER,
    NUM_CODE_POINTS,
    QUOTE,
    TERMINATOR,
    WIDE_TERMINATOR,
    WITHOUT_SPACES,
    decode,
    sentence_table,
)

FEWEST_BREAKS = 3  # fewer line ends prove nothing
# Columns. Prose is not wrapped at less than the first or at more than the last. Lines wider than
# the second are paragraphs or sentences, no matter how the next line begins.
NARROWEST_MARGIN = 30
_USUAL_MARGIN = 120
WIDEST_MARGIN = 200
# Sentences continue if they do at this share of the breaks, at least …
_CONTINUING = 1 / 5
# … and lines in lower case follow open lines this much more often than other lines.
_MORE_OFTEN = 3 / 2
# Lines are clauses if the first share of the breaks is after commas, as many are after sentences,
# and both together have the second share.
_CLAUSES = 1 / 8
_CLAUSE_ENDS = 0.6
# Lines were wrapped if this share of the breaks has marks …
_MARKED = 1 / 20
# … or if short lines are at most this share of the number that chance would make short.
_FITTING = 1 / 2
_FIRST_UNBROKEN_BYTE = 0xE0  # of UTF-8: of characters from U+0800 on, as Thai and Tibetan
# Columns at the beginning of a line that may not be broken, in scripts without spaces, where no
# space shows the first word: of ideographs (a character and a mark) and of other scripts (a word).
_FIRST_IDEOGRAPH = 0x2E80
_FIRST_HANGUL = 0xAC00
UNBROKEN_IDEOGRAPHS = 4
UNBROKEN_WORD = 12
_TIBETAN = (0x0F00, 0x0FFF)  # which has marks between syllables, and no spaces
_COMMAS = tuple(map(ord, ",\u060c\u1363\u3001\uff0c"))
_SEMICOLONS = tuple(map(ord, ";\u061b\uff1b"))
_ITEM_MARKS = tuple(map(ord, "*+-\u2022"))


class LineEnds(NamedTuple):
    """Signs of the ends of lines, [lines] each; wide characters have two columns."""

    widths: np.ndarray
    next_widths: np.ndarray  # with the first word of the next line
    other_widths: np.ndarray  # with the first word of the line after the next: a width by chance
    is_break: np.ndarray  # whether another line of the same block follows
    is_ended: np.ndarray  # whether a line has a mark at its end that ends a sentence
    # Columns of the first word that may not be broken: 0 of scripts with spaces, 4 of ideographs,
    # 12 of scripts that have no such marks, as Thai and Tibetan.
    unbroken: np.ndarray
    is_open: np.ndarray  # whether a line before a break has no mark that ends a sentence
    # Open lines of usual width with a comma or semicolon, or before a line in lower case.
    is_continued: np.ndarray
    has_comma: np.ndarray  # open lines with a comma, of any width
    is_followed: np.ndarray  # open lines before a line in lower case, of any width
    begins_lower: np.ndarray  # lines in lower case that do not follow an open line


def measure_lines(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray, is_break: np.ndarray
) -> LineEnds:
    """Measure lines of clean text.

    Args:
        data: uint8, UTF-8.
        starts, stops: int64 [lines], bytes of each.
        is_break: bool [lines - 1], whether the next line is of the same block.
    """
    is_break = np.append(is_break, False)
    widths, is_ended, has_comma, has_semicolon, is_lower, first_words, unbroken = _measure(
        data, starts, stops, sentence_table(), _unbroken_table()
    )
    is_open = is_break & ~is_ended
    is_usual = (widths >= NARROWEST_MARGIN) & (widths <= _USUAL_MARGIN)
    is_next_lower = np.append(is_lower[1:], False)
    continues = has_comma | has_semicolon | is_next_lower
    return LineEnds(
        widths=widths,
        next_widths=widths + 1 + np.append(first_words[1:], 0),
        other_widths=widths + 1 + np.append(first_words[2:], [0, 0])[: len(widths)],
        is_break=is_break,
        is_ended=is_ended,
        unbroken=unbroken,
        is_open=is_open,
        is_continued=is_open & is_usual & continues,
        has_comma=is_open & has_comma,
        is_followed=is_open & is_next_lower,
        begins_lower=is_lower & ~np.append(False, is_open[:-1]),
    )


def sentences_continue(lines, breaks, open_breaks, continued_breaks, lower_begins):
    """Tell whether sentences continue across line ends: lower case is frequent after open lines.

    Where any line may begin in lower case (chats, verse), lower case proves nothing, so its share
    after open lines is compared with that of the other lines.

    Args:
        lines, breaks, open_breaks, continued_breaks, lower_begins: counts as in `Sketch`; numbers,
            or int64 [documents] each.

    Returns:
        A bool, or bool [documents].
    """
    is_cased = continued_breaks * (lines - open_breaks) > _MORE_OFTEN * lower_begins * open_breaks
    return is_cased & (continued_breaks >= _CONTINUING * breaks)


def has_clauses(breaks, ended_breaks, comma_breaks):
    """Tell whether lines are clauses: a new line after each comma and each sentence.

    Markdown and LaTeX are often written with such semantic line breaks. Lines of lists end only
    with commas, lines of wrapped prose anywhere.

    Args:
        breaks: number of breaks.
        ended_breaks: of them, those after a mark that ends a sentence.
        comma_breaks: those after a comma.

    Returns:
        A bool, or bool [documents] if the arguments are arrays.
    """
    are_many = (comma_breaks >= _CLAUSES * breaks) & (ended_breaks >= _CLAUSES * breaks)
    return are_many & (comma_breaks + ended_breaks >= _CLAUSE_ENDS * breaks) & (breaks > 0)


def has_evidence(breaks, marked_breaks, short_lines, short_by_chance):
    """Tell whether lines that reach a margin do so because they were wrapped.

    Lines of one length (captions, rows of a log) reach it, too. Text that was wrapped has marks at
    line ends, or its lines fit the words that follow: with the first words of other lines, many
    more would not reach the margin.

    Args:
        breaks: number of breaks.
        marked_breaks: of them, those after a mark that ends a sentence, those after a comma, and
            those before a line in lower case.
        short_lines: lines before a break that end before the margin, with the word that follows.
        short_by_chance: the same with the first words of other lines.

    Returns:
        A bool, or bool [documents] if the arguments are arrays.
    """
    return (marked_breaks >= _MARKED * breaks) | (short_lines <= _FITTING * short_by_chance - 1)


@functools.cache
def _unbroken_table() -> np.ndarray:
    """Return columns that may not be broken, 0 for scripts with spaces; uint8 [NUM_CODE_POINTS]."""
    table: np.ndarray = np.zeros(NUM_CODE_POINTS, np.uint8)
    for bounds in (*WITHOUT_SPACES, _TIBETAN):
        table[bounds[0] : bounds[-1] + 1] = UNBROKEN_WORD
    table[_FIRST_IDEOGRAPH:_FIRST_HANGUL] = UNBROKEN_IDEOGRAPHS
    return table


@numba.njit(cache=True, nogil=True)
def _measure(data, starts, stops, table, unbroken):
    """Measure lines and their first words in columns; find marks at their ends and lower case.

    Args:
        data: uint8, UTF-8.
        starts, stops: int64 [lines], bytes of each.
        table: classes of characters, of `sentence_table`.
        unbroken: columns by code point, of `_unbroken_table`.

    Returns:
        [lines] each: widths, whether a sentence ends, whether a comma or a semicolon does, whether
        the line begins in lower case, the width of the first word, and `LineEnds.unbroken`.
    """
    count = len(starts)
    widths = np.zeros(count, np.int64)
    is_ended = np.zeros(count, np.bool_)
    has_comma = np.zeros(count, np.bool_)
    has_semicolon = np.zeros(count, np.bool_)
    is_lower = np.zeros(count, np.bool_)
    first_words = np.zeros(count, np.int64)
    lines_unbroken = np.zeros(count, np.int64)
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
                has_semicolon[line] = last in _SEMICOLONS
                is_ended[line] = kind in (TERMINATOR, WIDE_TERMINATOR)
                break
        word_stop = start
        while word_stop < stop and data[word_stop] != 32:
            word_stop += 1
        widths[line] = _columns(data, start, stop)
        first = decode(data, start)[0]
        is_lower[line] = table[first] == LOWER
        first_words[line] = _columns(data, start, word_stop)
        # Digits, quotes or Latin letters may come before the characters that are not broken.
        position = start
        while position < word_stop:
            if data[position] < _FIRST_UNBROKEN_BYTE:
                position += 1
                continue
            code_point, width = decode(data, position)
            if unbroken[code_point]:
                most = _columns(data, start, position) + unbroken[code_point]
                first_words[line] = min(first_words[line], most)
                lines_unbroken[line] = unbroken[code_point]
                break
            position += width
        if first_words[line] == 1 and first in _ITEM_MARKS:
            first_words[line] = -WIDEST_MARGIN  # an item is a paragraph of its own
    return widths, is_ended, has_comma, has_semicolon, is_lower, first_words, lines_unbroken


@numba.njit(cache=True)
def _columns(data, start, stop):
    """Return the columns of a text; wide characters have two."""
    columns = 0
    for position in range(start, stop):
        columns += (data[position] & 0xC0 != 0x80) + (data[position] >= FIRST_WIDE_BYTE)
    return columns

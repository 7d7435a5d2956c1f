"""Cleans lines of raw bytes: valid UTF-8, no control characters, single spaces, NFC.

White space is treated as by `tensorflow_text`'s BERT tokenizers. Joiners and direction marks stay.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import take_ranges
from bert_tf.data.text.casing import normalize
from pipeline.corpus.characters import (
    BLANK,
    CLOSER,
    COMPOSE,
    KEEP_INSIDE,
    LOWER,
    QUOTE,
    REMOVE,
    TERMINATOR,
    WIDE_TERMINATOR,
    cleaning_table,
    decode,
    sentence_table,
    valid_width,
)
from pipeline.corpus.document_block import offsets_and_data

FEWEST_BREAKS = 3  # fewer line ends prove nothing
NARROWEST_MARGIN, _USUAL_MARGIN, WIDEST_MARGIN = 30, 120, 200  # columns
_USUAL_FRACTION = 0.9  # of the width of lines whose sentence surely goes on
_FIRST_WIDE_BYTE = 0xE3  # of UTF-8: of characters from U+3000 on, which have two columns
# Scripts whose lines are broken between any characters, but a few marks.
_FIRST_IDEOGRAPH, _FIRST_HANGUL = 0x2E80, 0xAC00
_UNBROKEN = 4  # columns that may not be broken
_COMMAS = tuple(map(ord, ",;\u060c\u061b\u1363\u3001\uff0c\uff1b"))
_ITEM_MARKS = tuple(map(ord, "*+-\u2022"))


@dataclasses.dataclass(frozen=True)
class CleanLines:
    data: np.ndarray  # uint8; each line followed by one space
    offsets: np.ndarray  # int64 [lines + 1]; line l is `data[offsets[l] : offsets[l + 1] - 1]`
    # int64 [lines]; the byte of the raw line, from 0, where it stops being UTF-8, or -1. Such a
    # line is empty here.
    fault_positions: np.ndarray
    may_need_composition: bool  # whether any line has characters that NFC might change

    @property
    def lengths(self) -> np.ndarray:
        """int64 [lines], in bytes."""
        return np.diff(self.offsets) - 1

    def select(self, lines: np.ndarray) -> CleanLines:
        return self.take(self.offsets[:-1][lines], self.lengths[lines], self.fault_positions[lines])

    def without(self, lines: np.ndarray) -> CleanLines:
        """Empties the lines of a mask, bool [lines]."""
        if not lines.any():
            return self
        starts = np.where(lines, self.offsets[1:] - 1, self.offsets[:-1])
        return self.take(starts, np.where(lines, 0, self.lengths), self.fault_positions)

    def take(self, starts: np.ndarray, lengths: np.ndarray, faults: np.ndarray) -> CleanLines:
        """Lines of parts of the data, each of which a space follows."""
        data = take_ranges(self.data, starts, lengths + 1)
        return CleanLines(data, offsets_of(lengths + 1), faults, self.may_need_composition)


def clean_lines(
    data: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    steps: tuple[str, ...] = ("controls", "whitespace"),
) -> CleanLines:
    """Applies steps `controls` and `whitespace`, if given, to `data[starts[l] : stops[l]]`."""
    table = cleaning_table(controls="controls" in steps, whitespace="whitespace" in steps)
    return CleanLines(*_clean(data, starts, stops, table))


def find_blank_lines(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """bool [lines]: which of the lines `data[starts[l] : stops[l]]` are UTF-8 without any text."""
    clean = clean_lines(data, starts, stops)
    return (clean.lengths == 0) & (clean.fault_positions < 0)


@numba.njit(cache=True, nogil=True)
def _clean(data, starts, stops, table):
    cleaned = np.empty((stops - starts).sum() + len(starts), np.uint8)
    offsets = np.zeros(len(starts) + 1, np.int64)
    faults = np.full(len(starts), -1, np.int64)
    written = 0
    flagged = False
    for line in range(len(starts)):
        begin = text_stop = written
        blank_before = False
        position, stop = starts[line], stops[line]
        while position < stop:
            if 0x20 < data[position] < 0x7F:
                if blank_before:
                    cleaned[written] = 32
                    written += 1
                    blank_before = False
                cleaned[written] = data[position]
                written += 1
                text_stop = written
                position += 1
                continue
            width = valid_width(data, position, stop)
            if width == 0:
                faults[line] = position - starts[line]
                text_stop = begin
                break
            code_point, _ = decode(data, position)
            kind = table[code_point]
            if kind == BLANK:
                blank_before = written > begin
            elif kind != REMOVE and (kind != KEEP_INSIDE or written > begin):
                flagged |= kind == COMPOSE
                if blank_before:
                    cleaned[written] = 32
                    written += 1
                    blank_before = False
                for following in range(position, position + width):
                    cleaned[written] = data[following]
                    written += 1
                if kind != KEEP_INSIDE:
                    text_stop = written
            position += width
        written = text_stop
        cleaned[written] = 32
        written += 1
        offsets[line + 1] = written
    return cleaned[:written], offsets, faults, flagged


def compose(texts: pa.Array) -> pa.Array:
    """Brings texts without line feeds into NFC; only those that may need it take time."""
    offsets, data = offsets_and_data(texts)
    may_change = _find_uncomposed(data, offsets, cleaning_table())
    if not may_change.any():
        return texts
    # Arrow's own utf8_normalize leaves some letters apart (n + U+0303, for one).
    mask = pa.array(may_change)
    joined = "\n".join(texts.filter(mask).to_pylist())
    composed = normalize("NFC", joined).split("\n")
    return pc.replace_with_mask(texts, mask, pa.array(composed, pa.string()))


@numba.njit(cache=True, nogil=True)
def _find_uncomposed(data, offsets, table):
    may_change = np.zeros(len(offsets) - 1, np.bool_)
    for text in range(len(may_change)):
        position = offsets[text]
        while position < offsets[text + 1]:
            code_point, width = decode(data, position)
            if table[code_point] == COMPOSE:
                may_change[text] = True
                break
            position += width
    return may_change


def paragraph_bounds(data, offsets, line_documents, may_join=True):
    """Joins the lines of `CleanLines` to paragraphs, so that sentences are not cut at the margin.

    Only in hard-wrapped documents: half of the lines that another follows, without a mark at their
    end, reach the longest line with its first word, or sentences go on. None without `may_join`.

    Returns:
        Starts and stops in `data` of the paragraphs, none empty, and their documents (int64 each).
    """
    starts, stops = offsets[:-1], offsets[1:] - 1
    has_text = stops > starts
    joins = np.zeros(len(starts), np.bool_)
    if may_join and len(starts):
        is_break = has_text[:-1] & has_text[1:] & (np.diff(line_documents) == 0)
        joins = _joins(measure_lines(data, starts, stops, is_break), line_documents)
    begins = has_text & ~np.append(False, joins)[: len(starts)]
    return starts[begins], stops[has_text & ~joins], line_documents[begins]


def _joins(lines: LineEnds, documents: np.ndarray) -> np.ndarray:
    """bool [lines]: whether a line and the next one are of the same paragraph."""
    _, firsts, places = np.unique(documents, return_index=True, return_inverse=True)

    def total(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, firsts, dtype=np.int64)

    widest = np.maximum.reduceat(lines.widths, firsts)
    breaks, opens, continued = map(total, (lines.is_break, lines.is_open, lines.is_continued))
    reaching = total(lines.is_open & (lines.next_widths > widest[places]))
    fewest = np.maximum(np.maximum(breaks / 4, opens / 2), FEWEST_BREAKS - 1)
    is_wrapped = (breaks >= FEWEST_BREAKS) & (reaching >= fewest)
    counts = (total(lines.widths > 0), breaks, opens, continued, total(lines.begins_lower))
    usual = _USUAL_FRACTION * total(lines.widths * lines.is_continued) / np.maximum(continued, 1)
    usual[continued < FEWEST_BREAKS] = 1e9  # only the lines that surely go on are joined
    margins = np.where(goes_on(*counts), usual, np.inf)
    margins = np.where(is_wrapped & (widest <= WIDEST_MARGIN), widest, margins)[places]
    reaches = lines.is_break & (lines.next_widths > margins)
    return reaches | (lines.is_continued & (margins < np.inf))


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
    """Whether sentences go on across line ends: more lines in lower case follow open ones."""
    is_cased = 2 * continued_breaks * (lines - open_breaks) > 3 * lower_begins * open_breaks
    return is_cased & (5 * continued_breaks >= breaks)


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

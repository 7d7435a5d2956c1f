"""Cleans lines of raw bytes: valid UTF-8, no control characters, single spaces, NFC.

White space is treated as by `tensorflow_text`'s BERT tokenizers. Joiners and direction marks stay.
"""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import take_ranges
from bert_tf.data.text.casing import normalize
from pipeline.corpus.characters import (
    BLANK,
    COMPOSE,
    KEEP_INSIDE,
    REMOVE,
    cleaning_table,
    decode,
    valid_width,
)
from pipeline.corpus.document_block import offsets_and_data

# A line of these and of nothing else is drawn if it has so many of one kind in a row.
_RULING, _FEWEST_MARKS = "-=*~^#_+|`", 3


@dataclasses.dataclass(frozen=True)
class CleanLines:
    """Clean lines, one after the other.

    Attributes:
        data: uint8; each line is followed by one space.
        offsets: int64 [lines + 1]; line l is `data[offsets[l] : offsets[l + 1] - 1]`.
        fault_positions: int64 [lines]; the byte of the raw line, from 0, where it stops being
            UTF-8, or -1. Such a line is empty here.
        may_need_composition: whether any line has characters that NFC might change.
    """

    data: np.ndarray
    offsets: np.ndarray
    fault_positions: np.ndarray
    may_need_composition: bool

    @property
    def lengths(self) -> np.ndarray:
        """int64 [lines], in bytes."""
        return np.diff(self.offsets) - 1

    def select(self, lines: np.ndarray) -> CleanLines:
        return self.take(self.offsets[:-1][lines], self.lengths[lines], self.fault_positions[lines])

    def without(self, lines: np.ndarray) -> CleanLines:
        """Empty the lines of a mask, bool [lines]."""
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
    """Apply steps `controls` and `whitespace`, if given, to `data[starts[l] : stops[l]]`."""
    table = cleaning_table(controls="controls" in steps, whitespace="whitespace" in steps)
    return CleanLines(*_clean(data, starts, stops, table))


def find_blank_lines(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """bool [lines]: which of the lines `data[starts[l] : stops[l]]` are UTF-8 without any text."""
    clean = clean_lines(data, starts, stops)
    return (clean.lengths == 0) & (clean.fault_positions < 0)


def find_rules(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Find lines drawn with characters: below headings, between parts, around cells of tables.

    Args:
        data: uint8, UTF-8.
        starts, stops: int64 [lines].

    Returns:
        bool [lines]: which have marks such as `-`, `=` and `*`, three of one kind in a row, and
            nothing else.
    """
    return _find_rules(data, starts, stops, np.array([*map(ord, _RULING)], np.uint8))


@numba.njit(cache=True, nogil=True)
def _find_rules(data, starts, stops, ruling):
    is_mark = np.zeros(256, np.bool_)
    is_mark[ruling] = True
    found = np.zeros(len(starts), np.bool_)
    for line in range(len(starts)):
        longest = run = 0
        position, stop = starts[line], stops[line]
        while position < stop and (is_mark[data[position]] or data[position] <= 32):
            is_same = position > starts[line] and data[position] == data[position - 1]
            run = run + 1 if is_same and data[position] > 32 else 1
            longest = max(longest, run)
            position += 1
        found[line] = position == stop and longest >= _FEWEST_MARKS
    return found


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

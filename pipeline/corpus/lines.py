"""Cleans lines of raw bytes: valid UTF-8, no control characters, single spaces, NFC.

White space is treated as by `tensorflow_text`'s BERT tokenizers. Joiners and direction marks stay.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.base.kernels import take_ranges
from bert_tf.data.text.casing import normalize
from pipeline.corpus.characters import (
    BLANK,
    COMPOSE,
    KEEP_INSIDE,
    NUM_CODE_POINTS,
    REMOVE,
    cleaning_table,
    decode,
    valid_width,
)
from pipeline.corpus.document_block import offsets_and_data
from pipeline.corpus.layout.columns import Columns, measure_columns, no_columns

# A line is drawn if it has only these marks, and so many of one kind in a row, blanks aside.
_RULING = "-=*~^#_+|`/\\<>:@%&\u2010\u2013\u2014\u2015\u2022\u00b7\u00a7\u203b\u25a0\u25cf\u2605"
_FEWEST_MARKS = 2
# More dots are needed, since a few are an ellipsis.
_DOTS = (ord("."), 0x2026)
_FEWEST_DOTS = 5
_SEPARATORS = "%\u2042\u2766\u2767\u2619"  # one is enough: books have it between chapters
_BOXES = range(0x2500, 0x25A0)  # lines, corners and blocks of drawn frames
_FENCE = ord("`")
_FEWEST_OF_FENCE = 3


@dataclasses.dataclass(frozen=True)
class CleanLines:
    """Clean lines, one after the other.

    Attributes:
        data: uint8; each line is followed by one space.
        offsets: int64 [lines + 1]; line l is `data[offsets[l] : offsets[l + 1] - 1]`.
        fault_positions: int64 [lines]; the byte of the raw line, from 0, where it stops being
            UTF-8, or -1. Such a line is empty here.
        may_need_composition: whether any line has characters that NFC might change.
        columns: indents and columns of the raw lines, [lines] each.
    """

    data: np.ndarray
    offsets: np.ndarray
    fault_positions: np.ndarray
    may_need_composition: bool
    columns: Columns

    @property
    def lengths(self) -> np.ndarray:
        """int64 [lines], in bytes."""
        return np.diff(self.offsets) - 1

    def select(self, lines: np.ndarray) -> CleanLines:
        """Choose lines by a mask or their numbers."""
        return self.take(self.offsets[:-1][lines], self.lengths[lines], lines)

    def without(self, lines: np.ndarray) -> CleanLines:
        """Empty the lines of a mask, bool [lines]."""
        if not lines.any():
            return self
        starts = np.where(lines, self.offsets[1:] - 1, self.offsets[:-1])
        return self.take(starts, np.where(lines, 0, self.lengths), slice(None))

    def take(
        self, starts: np.ndarray, lengths: np.ndarray, lines: np.ndarray | slice
    ) -> CleanLines:
        """Take parts of the data as lines.

        Args:
            starts, lengths: int64 [parts], bytes of each; a space follows it.
            lines: mask or numbers of the lines that the parts are of, in their order.
        """
        return CleanLines(
            data=take_ranges(self.data, starts, lengths + 1),
            offsets=offsets_of(lengths + 1),
            fault_positions=self.fault_positions[lines],
            may_need_composition=self.may_need_composition,
            columns=self.columns.select(lines),
        )


def clean_lines(
    data: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    steps: tuple[str, ...] = ("controls", "whitespace"),
    *,
    has_columns: bool = False,
    text_of_line: np.ndarray | None = None,
) -> CleanLines:
    """Clean raw lines.

    Args:
        data: uint8, any bytes.
        starts, stops: int64 [lines], bytes of each.
        steps: of cleaning; `controls` and `whitespace` are applied, others ignored.
        has_columns: whether to measure the white space of the lines before it is removed.
        text_of_line: int64 [lines], see `measure_columns`.
    """
    table = cleaning_table(controls="controls" in steps, whitespace="whitespace" in steps)
    if has_columns:
        columns = measure_columns(data, starts, stops, text_of_line)
    else:
        columns = no_columns(len(starts))
    cleaned, offsets, fault_positions, may_need_composition = _clean(data, starts, stops, table)
    return CleanLines(cleaned, offsets, fault_positions, may_need_composition, columns)


def find_blank_lines(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return which lines are UTF-8 without any text, bool [lines]; see `clean_lines`."""
    clean = clean_lines(data, starts, stops)
    return (clean.lengths == 0) & (clean.fault_positions < 0)


def find_rules(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Find lines drawn with characters: below headings, between parts, around cells of tables.

    Args:
        data: uint8, UTF-8.
        starts, stops: int64 [lines].

    Returns:
        bool [lines]: which have marks such as `-`, `=` and `*`, two of one kind in a row, and
            nothing else; fences of code in Markdown may have a name behind them.
    """
    return _find_rules(data, starts, stops, _ruling_table())


@functools.cache
def _ruling_table() -> np.ndarray:
    """Return the number of each mark that makes a drawn line, 0 for text; uint8 [code points]."""
    table: np.ndarray = np.zeros(NUM_CODE_POINTS, np.uint8)
    table[_BOXES.start : _BOXES.stop] = _FEWEST_MARKS
    table[[*map(ord, _RULING)]] = _FEWEST_MARKS
    table[[*_DOTS]] = _FEWEST_DOTS
    table[[*map(ord, _SEPARATORS)]] = 1
    return table


@numba.njit(cache=True, nogil=True)
def _find_rules(data, starts, stops, table):
    """Find drawn lines, bool [lines]; see `find_rules`."""
    is_rule = np.zeros(len(starts), np.bool_)
    for line in range(len(starts)):
        position = starts[line]
        stop = stops[line]
        run = 0  # equal marks in a row
        before = 0  # the last mark
        is_long = False
        while position < stop:
            if data[position] <= 32:
                position += 1
                continue
            width = valid_width(data, position, stop)
            mark = decode(data, position)[0] if width else 0
            if table[mark] == 0:
                break
            run = run + 1 if mark == before else 1
            is_long |= run >= table[mark]
            before = mark
            position += width
        if position < stop and before == _FENCE and run >= _FEWEST_OF_FENCE:
            while position < stop and data[position] > 32:  # the name of a language
                position += 1
        is_rule[line] = position == stop and is_long
    return is_rule


@numba.njit(cache=True, nogil=True)
def _clean(data, starts, stops, table):
    """Clean lines; see `clean_lines`.

    Args:
        data: uint8, any bytes.
        starts, stops: int64 [lines], bytes of each.
        table: of `cleaning_table`.

    Returns:
        `data`, `offsets`, `fault_positions` and `may_need_composition` of `CleanLines`.
    """
    cleaned = np.empty((stops - starts).sum() + len(starts), np.uint8)
    offsets = np.zeros(len(starts) + 1, np.int64)
    faults = np.full(len(starts), -1, np.int64)
    written = 0
    flagged = False
    for line in range(len(starts)):
        begin = written
        text_stop = written  # white space after it is left out
        blank_before = False
        position = starts[line]
        stop = stops[line]
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
    """Bring texts without line feeds into NFC; only texts that may need it take time."""
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
    """Return which texts have a character that NFC might change, bool [texts]."""
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

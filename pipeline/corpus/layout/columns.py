"""Indentation and columns of raw lines, before cleaning removes them.

Tables, glossaries and manuals have cells that begin in the same column of neighboring lines.
Such a line is a row, a paragraph of its own. A line whose text begins in the column of a cell of
the row above continues that cell:

    -f, --force     Close the bridge without a question. No one is      ROW
                    asked.                                              CELL
    -q              Be quiet.                                           ROW

Justified text has wide gaps, too, but most of them are hardly ever in columns of the line above.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from bert_tf.base.compiled import numba
from pipeline.corpus.characters import FIRST_WIDE_BYTE

_TAB = 8  # columns between the stops of tabs
_GAP = 2  # columns without text before a cell, at least
_WIDE_GAP = 3  # such a gap shows a column in two lines
_FEWEST_ROWS = 3  # narrower gaps show two columns in so many lines, or one in a line more
_MOST_CELLS = 8  # of a line; further ones are not looked at
_IDEOGRAPHIC_SPACE = (0xE3, 0x80, 0x80)
_NO_BREAK_SPACE = (0xC2, 0xA0)
_ENDS = np.frombuffer(b".!?:;)\"'", np.uint8)  # typewriters set two spaces after these


class Place(enum.IntEnum):
    """Signs of the columns of a line's text."""

    ANY = 0
    ROW = 1  # cells of a table; a paragraph begins here and ends with the line or its cells
    CELL = 2  # continues a cell of the row above


class Columns(NamedTuple):
    """The places of text in lines, [lines] each."""

    indents: np.ndarray  # int64, columns before the text
    places: np.ndarray  # int8, values of `Place`

    def select(self, lines: np.ndarray | slice) -> Columns:
        """Choose lines by a mask or their numbers."""
        return Columns(self.indents[lines], self.places[lines])


def no_columns(lines: int) -> Columns:
    """Return the columns of lines whose white space means nothing, as in HTML."""
    return Columns(np.zeros(lines, np.int64), np.zeros(lines, np.int8))


def measure_columns(
    data: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    text_of_line: np.ndarray | None = None,
) -> Columns:
    """Measure raw lines.

    Args:
        data: uint8, any bytes; they need not be valid UTF-8.
        starts, stops: int64 [lines], bytes of each line.
        text_of_line: int64 [lines], the text of each line; lines of different texts are not
            compared. None if all lines are of one text.
    """
    texts = np.zeros(len(starts), np.int64) if text_of_line is None else text_of_line
    return Columns(*_measure(data, starts, stops, texts))


@numba.njit(cache=True, inline="always")
def _blank_width(data, position, stop, column):
    """Return the bytes and the columns of white space at a position; 0 if text is there."""
    byte = data[position]
    if byte == 9:
        return 1, _TAB - column % _TAB
    if byte <= 32:
        return 1, int(byte == 32)
    if byte == _NO_BREAK_SPACE[0] and position + 1 < stop:
        return (2, 1) if data[position + 1] == _NO_BREAK_SPACE[1] else (0, 0)
    if byte == _IDEOGRAPHIC_SPACE[0] and position + 2 < stop:
        is_space = data[position + 1] == _IDEOGRAPHIC_SPACE[1]
        return (3, 2) if is_space and data[position + 2] == _IDEOGRAPHIC_SPACE[2] else (0, 0)
    return 0, 0


@numba.njit(cache=True, nogil=True)
def _find_cells(data, start, stop, cells, gaps):
    """Find the cells of a line.

    Args:
        data: uint8.
        start, stop: bytes of the line.
        cells: int64, set to the columns of cells after the first.
        gaps: int64, set to the columns without text before each.

    Returns:
        The column of the first cell, -1 for a line without text, and the number of the other cells.
    """
    column = gap = num_cells = 0
    indent = -1
    before = np.uint8(0)
    position = start
    while position < stop:
        width, columns = _blank_width(data, position, stop, column)
        if width:
            has_tab = data[position] == 9
            gap += max(columns, _WIDE_GAP) if has_tab and indent >= 0 else columns
            column += columns
            position += width
            continue
        byte = data[position]
        if indent < 0:
            indent = column
        elif gap >= _GAP and num_cells < len(cells) and not (gap == _GAP and before in _ENDS):
            cells[num_cells] = column
            gaps[num_cells] = gap
            num_cells += 1
        gap = 0
        before = byte
        column += (byte & 0xC0 != 0x80) + (byte >= FIRST_WIDE_BYTE)
        position += 1
    return indent, num_cells


@numba.njit(cache=True, nogil=True)
def _measure(data, starts, stops, texts):
    """Return the fields of `Columns`; see `measure_columns`.

    A line with cells is compared with the line above. `runs` counts for each cell in how many
    lines in a row its column occurs: if enough columns agree, these lines are rows.
    """
    count = len(starts)
    indents = np.zeros(count, np.int64)
    places = np.zeros(count, np.int8)
    # Rows 0 and 1 belong to a line and the one above it, and change places from line to line.
    cells = np.zeros((2, _MOST_CELLS), np.int64)
    gaps = np.zeros((2, _MOST_CELLS), np.int64)
    runs = np.zeros((2, _MOST_CELLS), np.int64)  # lines that have the column, up to this one
    numbers = np.zeros(2, np.int64)
    row = np.zeros(_MOST_CELLS, np.int64)  # cells of the row that the next line may continue
    in_row = 0  # their number
    for line in range(count):
        own = line % 2
        above = 1 - own
        if line > 0 and texts[line] != texts[line - 1]:
            numbers[above] = 0
            in_row = 0
        indent, num_cells = _find_cells(data, starts[line], stops[line], cells[own], gaps[own])
        numbers[own] = num_cells
        indents[line] = max(indent, 0)
        if indent < 0:
            in_row = 0
            continue
        if num_cells == 0:
            is_cell = False
            for place in range(in_row):
                is_cell |= row[place] == indent
            if is_cell:
                places[line] = Place.CELL
                if places[line - 1] == Place.ANY:
                    places[line - 1] = Place.ROW
            else:
                in_row = 0
            continue
        is_wide = False
        agreeing = thirds = longest = 0
        for place in range(num_cells):
            runs[own, place] = 1
            for other in range(numbers[above]):
                if cells[own, place] == cells[above, other]:
                    runs[own, place] += runs[above, other]
                    is_wide |= min(gaps[own, place], gaps[above, other]) >= _WIDE_GAP
            agreeing += runs[own, place] > 1
            thirds += runs[own, place] >= _FEWEST_ROWS
            longest = max(longest, runs[own, place])
        rows = 2 if is_wide else 0
        # Lines of justified text have many gaps, few of them in a column of the line above.
        if 2 * agreeing >= num_cells:
            if longest > _FEWEST_ROWS:
                rows = _FEWEST_ROWS + 1
            elif thirds > 1:
                rows = _FEWEST_ROWS
        places[line + 1 - rows : line + 1] = Place.ROW
        in_row = num_cells
        row[:num_cells] = cells[own, :num_cells]
    return indents, places

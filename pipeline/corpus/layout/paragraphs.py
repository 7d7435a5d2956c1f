"""Join the lines of hard-wrapped documents to paragraphs.

Each document is judged by itself, as rows of a table and pages have layouts of their own. Two signs
count: lines reach the margin (the longest line) with the first word of the next line, or lines in
lower case follow lines without a mark at their end. Indentation and columns count, too: rows of
tables, headings and items begin paragraphs (`find_structure`).
"""

from __future__ import annotations

import numpy as np

from pipeline.corpus.layout.columns import Columns, Place, no_columns
from pipeline.corpus.layout.line_ends import (
    FEWEST_BREAKS,
    NARROWEST_MARGIN,
    UNBROKEN_IDEOGRAPHS,
    WIDEST_MARGIN,
    LineEnds,
    has_clauses,
    has_evidence,
    measure_lines,
    sentences_continue,
)

# A line continues if it is wider than this part of the mean width of lines whose sentence surely
# continues.
_USUAL_FRACTION = 0.9
# Documents are double-spaced if this part of their lines, and at least so many, have a blank one
# after them.
_DOUBLE_SPACED = 0.9
_FEWEST_SPACED = 8
# Bytes of a column of text: a character of four bytes, with three marks above and below it.
_MOST_COLUMN_BYTES = 16
_TIGHT = 0.9  # part of the open lines that fill the margin with ideographs
_INDENT = 4  # columns that cleaning takes from the first lines of paragraphs
_STEP = 2  # columns by which indents differ, at least, where something begins
# Part of a block's widest line: a line that is not wider with the next word was not wrapped.
_SHORT = 0.6
_FEWEST_BELOW = 2  # open lines below a heading that show a margin
_OUTLYING = 1.25  # times as wide as the others: a line with an address that cannot be broken
_NEARLY = 0.8  # of the widest line: lines of text with ragged ends, with the next word
# Deeper lines begin paragraphs if at most the first share of the lines before them reaches the
# margin, and at least the second share of the other lines. They continue paragraphs if at least the
# third share of the lines before them reaches it.
_FIRST_LINES = 0.5
_FILLED = 0.7
_HANGING = 0.9
_FEWEST_STEPS = 3  # deeper lines of a document that show either
# Lines that reach the margin with the next word: of all breaks, and of those without a mark.
_REACHING = 1 / 4
_REACHING_OPEN = 1 / 2
_WIDER_THAN_ALL = 1e9  # columns; finite, unlike the margin of lines that are not joined at all


def paragraph_bounds(
    data: np.ndarray,
    offsets: np.ndarray,
    line_documents: np.ndarray,
    may_join: bool = True,
    columns: Columns | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join the lines of `CleanLines` to paragraphs, so that sentences are not cut at the margin.

    Args:
        data: uint8, the clean text; each line is followed by one space.
        offsets: int64 [lines + 1] into `data`.
        line_documents: int64 [lines], the document of each line, ascending.
        may_join: whether to join lines at all; else each is a paragraph.
        columns: where the text of the raw lines stood, if that is known.

    Returns:
        Starts and stops in `data` of the paragraphs, none empty, and their documents (int64
        [paragraphs] each).
    """
    starts = offsets[:-1]
    stops = offsets[1:] - 1
    has_text = stops > starts
    joins = np.zeros(len(starts), np.bool_)
    if may_join and len(starts):
        is_break = has_text[:-1] & has_text[1:] & (np.diff(line_documents) == 0)
        ends = measure_lines(data, starts, stops, is_break)
        columns = no_columns(len(starts)) if columns is None else columns
        begins, continues = find_structure(ends, columns)
        steps, hangs = _find_steps(ends, columns, line_documents)
        joins = _joins(ends, line_documents)
        joins[:-1] &= ~begins[1:]
        joins |= hangs
        joins[:-1] |= continues[1:]
        joins[:-1] &= ~steps[1:]
    begins = has_text & ~np.append(False, joins)[: len(starts)]
    return starts[begins], stops[has_text & ~joins], line_documents[begins]


def find_structure(ends: LineEnds, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Find the lines that begin or continue a paragraph, by the indents and columns of their text.

    Where the indent changes, a paragraph begins after the end of a sentence, and after a line that
    is too short to have been wrapped: a heading, a term.

    In blocks of one indent a paragraph begins after short lines of narrow blocks (addresses, lists
    without marks), and after a short first line, if all other open lines reach the margin; in text
    that is broken by sense, other lines are short, too. There it does not begin after a comma, nor
    with a line in lower case.

    Args:
        ends: of clean lines.
        columns: of the same lines, before they were cleaned.

    Returns:
        bool [lines] each: lines that always begin a paragraph, and lines that continue a cell.
    """
    widths = columns.indents + ends.widths
    with_next = columns.indents + ends.next_widths
    blocks = np.append(True, ~ends.is_break[:-1])
    firsts = np.flatnonzero(blocks)
    block_of_line = np.cumsum(blocks) - 1
    widest = _widest_of_blocks(widths, firsts)[block_of_line]
    is_narrow = widest < NARROWEST_MARGIN
    is_short = with_next <= np.where(is_narrow, NARROWEST_MARGIN, _SHORT * widest)
    # Lines below a heading: those without a mark at their end, all of which reach the margin.
    is_below = ends.is_open & ~blocks
    reaching = np.add.reduceat(is_below & (with_next > _NEARLY * widest), firsts, dtype=np.int64)
    below = np.add.reduceat(is_below, firsts, dtype=np.int64)
    is_heading = blocks & ((reaching == below) & (below >= _FEWEST_BELOW))[block_of_line]
    may_end = is_narrow | is_heading
    steps = np.diff(columns.indents, append=0)
    is_deeper = steps >= _STEP
    is_shallower = steps <= -_STEP
    # The first line of a block may be the indented one of a paragraph, and end with a sentence.
    is_last = is_deeper | (is_shallower & (~blocks | (with_next <= _NEARLY * widest)))
    is_incomplete = ends.has_comma | ends.is_followed
    is_row = columns.places == Place.ROW
    is_cell = columns.places == Place.CELL
    has_changed = is_deeper | is_shallower
    ends_here = is_last & ~ends.is_open
    ends_here |= is_short & (has_changed | (may_end & ~is_incomplete))
    ends_here |= is_row | (is_cell & has_changed)
    is_after_break = np.append(False, ends.is_break[:-1])
    continues = is_cell & is_after_break
    begins = is_row | (np.append(False, ends_here[:-1]) & is_after_break)
    return begins & ~continues, continues


def _widest_of_blocks(widths: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return the width of each block's widest line, int64 [blocks].

    A single line that is much wider than the others, such as one with a long address, counts as
    `_OUTLYING` times as wide as these.

    Args:
        widths: int64 [lines].
        firsts: int64 [blocks], the first line of each.
    """
    widest = np.maximum.reduceat(widths, firsts)
    is_widest = widths == np.repeat(widest, np.diff(firsts, append=len(widths)))
    others = np.maximum.reduceat(np.where(is_widest, 0, widths), firsts)
    is_single = (np.add.reduceat(is_widest, firsts, dtype=np.int64) == 1) & (others > 0)
    return np.where(is_single, np.minimum(widest, _OUTLYING * others), widest).astype(np.int64)


def _find_steps(
    ends: LineEnds, columns: Columns, documents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the meaning of deeper lines in each document.

    In books, first lines of paragraphs are deeper: the lines before them end anywhere, and they
    and the lines that follow reach the margin. In lists, the deeper lines continue an item: the
    lines before them reach the margin.

    Returns:
        bool [lines] each: first lines of paragraphs; lines that the next one continues.
    """
    steps = np.diff(columns.indents, append=0)
    is_deeper = ends.is_break & (steps >= _STEP)
    firsts, places = _documents_of(documents)

    def total(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, firsts, dtype=np.int64)

    deeper = total(is_deeper)
    are_many = deeper >= _FEWEST_STEPS
    if not are_many.any():
        return np.zeros(len(places), np.bool_), np.zeros(len(places), np.bool_)
    widths = np.where(ends.is_break, columns.indents + ends.widths, 0)
    margins = np.maximum.reduceat(widths, firsts)
    are_many &= (margins >= NARROWEST_MARGIN) & (margins <= WIDEST_MARGIN)
    reaches = ends.is_break & (columns.indents + ends.next_widths > _NEARLY * margins[places])
    reaching = total(reaches & is_deeper)
    others = total(ends.is_break) - deeper
    are_first = are_many & (reaching <= _FIRST_LINES * deeper)
    are_first &= total(reaches & ~is_deeper) >= _FILLED * others
    are_hanging = are_many & (reaching >= _HANGING * deeper)
    continues = reaches & np.where(is_deeper, are_hanging[places], are_first[places])
    begins = is_deeper & are_first[places]  # with the next line
    return np.append(False, begins[:-1]), continues


def find_double_spacing(
    data: np.ndarray, offsets: np.ndarray, line_documents: np.ndarray
) -> np.ndarray:
    """Find the blank lines between the lines of double-spaced documents, as written by typewriters.

    A document is double-spaced if nearly every line has a blank one after it, and the lines without
    these are hard-wrapped.

    Args:
        data, offsets, line_documents: as of `paragraph_bounds`.

    Returns:
        bool [lines], blank lines that are no borders of paragraphs.
    """
    is_spacing = np.zeros(len(line_documents), np.bool_)
    has_text = np.diff(offsets) > 1
    places = np.flatnonzero(has_text)
    if len(places) < 2:
        return is_spacing
    steps = np.diff(places)
    is_inside = np.diff(line_documents[places]) == 0
    is_spaced = is_inside & (steps == 2)
    if is_spaced.sum() < _FEWEST_SPACED:
        return is_spacing
    firsts, owners = _documents_of(line_documents[places])
    spaced = np.add.reduceat(np.append(is_spaced, False), firsts, dtype=np.int64)
    total = np.add.reduceat(np.append(is_inside, False), firsts, dtype=np.int64)
    is_spaced = (spaced >= _DOUBLE_SPACED * total) & (spaced >= _FEWEST_SPACED)
    # Paragraphs with blank lines between them are longer than any margin, and not worth measuring.
    longest = np.maximum.reduceat(np.diff(offsets)[places], firsts)
    is_spaced &= longest <= _MOST_COLUMN_BYTES * WIDEST_MARGIN
    if not is_spaced.any():
        return is_spacing
    chosen = places[is_spaced[owners]]
    documents = line_documents[chosen]
    is_break = (np.diff(chosen) <= 2) & (np.diff(documents) == 0)
    lines = measure_lines(data, offsets[:-1][chosen], offsets[1:][chosen] - 1, is_break)
    joined = _joins(lines, documents, by_margin=True)
    is_spacing[chosen[:-1][is_break & joined[:-1]] + 1] = True
    return is_spacing & ~has_text


def _documents_of(line_documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first line of each document, and for each line the place of its document."""
    is_first = np.append(True, np.diff(line_documents) != 0)
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


def _joins(lines: LineEnds, documents: np.ndarray, *, by_margin: bool = False) -> np.ndarray:
    """Tell whether each line and the next one are of the same paragraph.

    Args:
        lines: the ends of the lines.
        documents: int64 [lines], the document of each line.
        by_margin: whether only lines that reach a margin are joined.

    Returns:
        bool [lines].
    """
    firsts, places = _documents_of(documents)

    def total(values: np.ndarray) -> np.ndarray:
        if len(firsts) == 1 and values.dtype == np.bool_:
            return np.array([np.count_nonzero(values)], np.int64)  # in a tenth of the time
        return np.add.reduceat(values, firsts, dtype=np.int64)

    widest = np.maximum.reduceat(lines.widths, firsts)
    breaks = total(lines.is_break)
    opens = total(lines.is_open)
    continued = total(lines.is_continued)
    reaching = total(lines.is_open & (lines.next_widths > widest[places]))
    fewest = np.maximum(_REACHING * breaks, _REACHING_OPEN * opens)
    fewest = np.maximum(fewest, FEWEST_BREAKS - 1)
    by_chance = total(lines.is_open & (lines.other_widths > widest[places]))
    is_wrapped = (breaks >= FEWEST_BREAKS) & (reaching >= fewest)
    marked_breaks = breaks - opens + continued
    evidence = has_evidence(breaks, marked_breaks, opens - reaching, opens - by_chance)
    # Lines of ideographs that fill the margin to the last character are no accident.
    ideographs = total(lines.is_open & (lines.unbroken == UNBROKEN_IDEOGRAPHS))
    is_wrapped &= evidence | ((ideographs >= _TIGHT * opens) & (reaching >= _TIGHT * opens))
    is_wrapped &= (widest >= NARROWEST_MARGIN) & (widest <= WIDEST_MARGIN)
    wrapped_margins = np.where(is_wrapped, widest - _INDENT, np.inf)
    if by_margin:
        return lines.is_break & (lines.next_widths > wrapped_margins[places])
    counts = (total(lines.widths > 0), breaks, opens, continued, total(lines.begins_lower))
    usual = _USUAL_FRACTION * total(lines.widths * lines.is_continued) / np.maximum(continued, 1)
    # Too few for a mean: no line is so wide, so only the lines that surely continue are joined.
    usual[continued < FEWEST_BREAKS] = _WIDER_THAN_ALL
    margins = np.where(sentences_continue(*counts), usual, np.inf)
    margins = np.where(is_wrapped, wrapped_margins, margins)[places]
    reaches = lines.is_break & (lines.next_widths > margins)
    are_clauses = has_clauses(breaks, breaks - opens, total(lines.has_comma))[places]
    return reaches | (lines.is_continued & (margins < np.inf)) | (lines.has_comma & are_clauses)

"""Joins the lines of hard-wrapped documents to paragraphs.

Each document is judged by itself, as rows of a table and pages have layouts of their own. Two signs
count: lines reach the margin (the longest line) with the first word of the next line, or lines in
lower case follow lines without a mark at their end.
"""

from __future__ import annotations

import numpy as np

from pipeline.corpus.layout.line_ends import (
    FEWEST_BREAKS,
    NARROWEST_MARGIN,
    UNBROKEN_IDEOGRAPHS,
    WIDEST_MARGIN,
    LineEnds,
    goes_on,
    has_clauses,
    has_evidence,
    measure_lines,
)

# Of the mean width of lines whose sentence surely goes on; a wider line goes on, too.
_USUAL_FRACTION = 0.9
# Of the lines that another follows, and their number: those with a blank line after them.
_DOUBLE_SPACED, _FEWEST_SPACED = 0.9, 8
_TIGHT = 0.9  # of the open lines
_INDENT = 4  # columns: cleaning takes it from the first lines of paragraphs
# Lines that reach the margin with the next word: of all breaks, and of those without a mark.
_REACHING, _REACHING_OPEN = 1 / 4, 1 / 2


def paragraph_bounds(
    data: np.ndarray, offsets: np.ndarray, line_documents: np.ndarray, may_join: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join the lines of `CleanLines` to paragraphs, so that sentences are not cut at the margin.

    Args:
        data: uint8, the clean text; each line is followed by one space.
        offsets: int64 [lines + 1] into `data`.
        line_documents: int64 [lines], the document of each line, ascending.
        may_join: whether to join lines at all; else each is a paragraph.

    Returns:
        Starts and stops in `data` of the paragraphs, none empty, and their documents (int64
        [paragraphs] each).
    """
    starts, stops = offsets[:-1], offsets[1:] - 1
    has_text = stops > starts
    joins = np.zeros(len(starts), np.bool_)
    if may_join and len(starts):
        is_break = has_text[:-1] & has_text[1:] & (np.diff(line_documents) == 0)
        joins = _joins(measure_lines(data, starts, stops, is_break), line_documents)
    begins = has_text & ~np.append(False, joins)[: len(starts)]
    return starts[begins], stops[has_text & ~joins], line_documents[begins]


def find_double_spacing(
    data: np.ndarray, offsets: np.ndarray, line_documents: np.ndarray
) -> np.ndarray:
    """Find the blank lines between the lines of double-spaced documents, as typewriters write.

    Nearly every line has a blank one after it, and without these the lines are hard-wrapped.

    Args:
        data, offsets, line_documents: as of `paragraph_bounds`.

    Returns:
        bool [lines], which are blank and no borders of paragraphs.
    """
    found = np.zeros(len(line_documents), np.bool_)
    has_text = np.diff(offsets) > 1
    places = np.flatnonzero(has_text)
    if len(places) < 2:
        return found
    steps = np.diff(places)
    is_inside = np.diff(line_documents[places]) == 0
    is_spaced = is_inside & (steps == 2)
    if is_spaced.sum() < _FEWEST_SPACED:
        return found
    firsts, owners = _documents_of(line_documents[places])
    spaced = np.add.reduceat(np.append(is_spaced, False), firsts, dtype=np.int64)
    total = np.add.reduceat(np.append(is_inside, False), firsts, dtype=np.int64)
    is_spaced = (spaced >= _DOUBLE_SPACED * total) & (spaced >= _FEWEST_SPACED)
    if not is_spaced.any():
        return found
    chosen = places[is_spaced[owners]]
    documents = line_documents[chosen]
    is_break = (np.diff(chosen) <= 2) & (np.diff(documents) == 0)
    lines = measure_lines(data, offsets[:-1][chosen], offsets[1:][chosen] - 1, is_break)
    joined = _joins(lines, documents, by_margin=True)
    found[chosen[:-1][is_break & joined[:-1]] + 1] = True
    return found & ~has_text


def _documents_of(line_documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first line of each document, and for each line the place of its document."""
    is_first = np.append(True, np.diff(line_documents) != 0)
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


def _joins(lines: LineEnds, documents: np.ndarray, *, by_margin: bool = False) -> np.ndarray:
    """bool [lines]: whether a line and the next one are of the same paragraph.

    With `by_margin`, only where lines reach a margin.
    """
    firsts, places = _documents_of(documents)

    def total(values: np.ndarray) -> np.ndarray:
        if len(firsts) == 1 and values.dtype == np.bool_:
            return np.array([np.count_nonzero(values)], np.int64)  # in a tenth of the time
        return np.add.reduceat(values, firsts, dtype=np.int64)

    widest = np.maximum.reduceat(lines.widths, firsts)
    breaks, opens, continued = map(total, (lines.is_break, lines.is_open, lines.is_continued))
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
    usual[continued < FEWEST_BREAKS] = 1e9  # only the lines that surely go on are joined
    margins = np.where(goes_on(*counts), usual, np.inf)
    margins = np.where(is_wrapped, wrapped_margins, margins)[places]
    reaches = lines.is_break & (lines.next_widths > margins)
    are_clauses = has_clauses(breaks, breaks - opens, total(lines.has_comma))[places]
    return reaches | (lines.is_continued & (margins < np.inf)) | (lines.has_comma & are_clauses)

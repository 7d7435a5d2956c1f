"""Joins the lines of hard-wrapped documents to paragraphs.

Each document is judged by itself, as rows of a table and pages have layouts of their own. Two signs
count: lines reach the margin (the longest line) with the first word of the next line, or lines in
lower case follow lines without a mark at their end.
"""

from __future__ import annotations

import numpy as np

from pipeline.corpus.layout.line_ends import (
    FEWEST_BREAKS,
    WIDEST_MARGIN,
    LineEnds,
    goes_on,
    measure_lines,
)

# Of the mean width of lines whose sentence surely goes on; a wider line goes on, too.
_USUAL_FRACTION = 0.9
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


def _joins(lines: LineEnds, documents: np.ndarray) -> np.ndarray:
    """bool [lines]: whether a line and the next one are of the same paragraph."""
    _, firsts, places = np.unique(documents, return_index=True, return_inverse=True)

    def total(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, firsts, dtype=np.int64)

    widest = np.maximum.reduceat(lines.widths, firsts)
    breaks, opens, continued = map(total, (lines.is_break, lines.is_open, lines.is_continued))
    reaching = total(lines.is_open & (lines.next_widths > widest[places]))
    fewest = np.maximum(_REACHING * breaks, _REACHING_OPEN * opens)
    fewest = np.maximum(fewest, FEWEST_BREAKS - 1)
    is_wrapped = (breaks >= FEWEST_BREAKS) & (reaching >= fewest)
    counts = (total(lines.widths > 0), breaks, opens, continued, total(lines.begins_lower))
    usual = _USUAL_FRACTION * total(lines.widths * lines.is_continued) / np.maximum(continued, 1)
    usual[continued < FEWEST_BREAKS] = 1e9  # only the lines that surely go on are joined
    margins = np.where(goes_on(*counts), usual, np.inf)
    margins = np.where(is_wrapped & (widest <= WIDEST_MARGIN), widest, margins)[places]
    reaches = lines.is_break & (lines.next_widths > margins)
    return reaches | (lines.is_continued & (margins < np.inf))

"""Joins hard-wrapped lines to paragraphs, so that sentences are not cut at the margin."""

from __future__ import annotations

import numba
import numpy as np

from bert_tf.base.kernels import count_characters

_FEWEST_BREAKS = 3  # fewer line ends prove nothing
_WRAPPED_FRACTION = 0.5
_WIDEST_MARGIN = 200  # characters


def paragraph_bounds(
    data: np.ndarray, offsets: np.ndarray, line_documents: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joins clean lines to paragraphs.

    A line end stays the end of a paragraph unless the document is hard-wrapped: at least half of
    its lines that another line follows end where that line's first word would have crossed the
    margin (the document's longest line); of lists and verses it is a tenth. In such a document,
    just these line ends become spaces.

    Args:
        data: uint8, clean lines, each followed by one space (`CleanLines.data`).
        offsets: int64 [lines + 1], line l is `data[offsets[l] : offsets[l + 1] - 1]`.
        line_documents: int64 [lines], not falling: the document of each line.

    Returns:
        Starts and stops of the paragraphs in `data`, none empty (int64 [paragraphs] each), and
        their documents (int64 [paragraphs]).
    """
    starts = np.empty(len(line_documents), np.int64)
    stops = np.empty(len(line_documents), np.int64)
    documents = np.empty(len(line_documents), np.int64)
    found = _join(data, offsets, line_documents, starts, stops, documents)
    return starts[:found], stops[:found], documents[:found]


@numba.njit(cache=True, nogil=True)
def _join(data, offsets, line_documents, starts, stops, documents):
    found = 0
    first = 0
    while first < len(line_documents):
        last = first
        while last < len(line_documents) and line_documents[last] == line_documents[first]:
            last += 1
        margin = _margin(data, offsets, first, last)
        joins = False
        for line in range(first, last):
            start, stop = offsets[line], offsets[line + 1] - 1
            if start == stop:
                joins = False
                continue
            if joins:
                stops[found - 1] = stop
            else:
                starts[found], stops[found] = start, stop
                documents[found] = line_documents[line]
                found += 1
            joins = line + 1 < last and _reaches(data, offsets, line, margin)
        first = last
    return found


@numba.njit(cache=True)
def _margin(data, offsets, first, last):
    """Width in characters at which the lines were wrapped, or more than any line's if they were
    not."""
    widest = 0
    for line in range(first, last):
        widest = max(widest, count_characters(data, offsets[line], offsets[line + 1] - 1))
    breaks = reaching = 0
    for line in range(first, last - 1):
        has_text = offsets[line + 1] - offsets[line] > 1
        if has_text and offsets[line + 2] - offsets[line + 1] > 1:
            breaks += 1
            reaching += _reaches(data, offsets, line, widest)
    is_wrapped = breaks >= _FEWEST_BREAKS and reaching >= _WRAPPED_FRACTION * breaks
    return widest if is_wrapped and widest <= _WIDEST_MARGIN else np.int64(1 << 62)


@numba.njit(cache=True)
def _reaches(data, offsets, line, margin):
    """Whether the first word of the next line would have crossed the margin in this line."""
    word_stop = offsets[line + 1]
    while data[word_stop] != 32:
        word_stop += 1
    width = count_characters(data, offsets[line], offsets[line + 1] - 1)
    return width + 1 + count_characters(data, offsets[line + 1], word_stop) > margin

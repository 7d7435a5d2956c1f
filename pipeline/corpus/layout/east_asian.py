"""Line breaks between characters of Chinese and Japanese, whose words no blanks separate.

A break between lines of a paragraph becomes a blank in other scripts. Here it would cut a word of
kana in two; it is removed, as browsers do (CSS Text Module Level 3, section 4.1.3, "segment break
transformation rules"), with the blanks around it. Korean has blanks between words. Thai, Lao, Khmer
and Burmese have blanks between phrases, so a break may stand for one: it becomes a blank, too, as
beside marks that these scripts share with others (curly quotes, dashes, ellipses).
"""

from __future__ import annotations

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.base.kernels import take_ranges

_BLANKS = (0x20, 0x09, 0x0D)
_WIDTH = 3  # bytes of these characters in UTF-8; rare ideographs of 4 bytes keep their blank
# First bytes of U+3000 to U+9FFF: marks, kana and ideographs; second bytes of U+3100 to U+31BF,
# which hold the letters of Korean.
_FIRST_LEAD = 0xE3
_LAST_LEAD = 0xE9
_FIRST_KOREAN = 0x84
_LAST_KOREAN = 0x86
# First two bytes of U+FF00 to U+FFFF, full-width marks and letters.
_WIDE_LEAD = 0xEF
_FIRST_WIDE = 0xBC


def remove_breaks(
    data: np.ndarray, breaks: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Remove the breaks between two such characters, and the blanks around them.

    Args:
        data: uint8, UTF-8.
        breaks: int64, ascending, blanks between joined lines; several may be in one run.
        starts, stops: int64, places in `data`, none of them inside a run of blanks at a break.

    Returns:
        `data` without these breaks, and the new places.
    """
    runs = _blank_runs(data, breaks)
    is_between = _is_east_asian(data, runs[0] - _WIDTH) & _is_east_asian(data, runs[1])
    if not is_between.any():
        return data, starts, stops
    first, stop = runs[:, is_between]
    kept = np.append(0, stop)
    lengths = np.append(first, len(data)) - kept
    removed = offsets_of(stop - first)  # bytes removed before a place, by the breaks before it
    return (
        take_ranges(data, kept, lengths),
        starts - removed[np.searchsorted(first, starts)],
        stops - removed[np.searchsorted(first, stops)],
    )


@numba.njit(cache=True, nogil=True)
def _blank_runs(data: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """Return where the runs of blanks around breaks begin and end, each once; int64 [2, runs]."""
    bounds = np.empty((2, len(breaks)), np.int64)
    runs = 0
    stop = 0
    for place in breaks:
        if place < stop:
            continue
        first = place
        while first > 0 and data[first - 1] in _BLANKS:
            first -= 1
        stop = place + 1
        while stop < len(data) and data[stop] in _BLANKS:
            stop += 1
        bounds[:, runs] = first, stop
        runs += 1
    return bounds[:, :runs]


def _is_east_asian(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Whether a character of three bytes, of Chinese or Japanese, begins at places; bool.

    Places may be outside the data, and the data may end in the middle of a character.
    """
    last = len(data) - 1
    lead = data[np.clip(places, 0, last)]
    second = data[np.clip(places + 1, 0, last)]
    is_korean = (lead == _FIRST_LEAD) & (second >= _FIRST_KOREAN) & (second <= _LAST_KOREAN)
    is_usual = (lead >= _FIRST_LEAD) & (lead <= _LAST_LEAD) & ~is_korean
    is_wide = (lead == _WIDE_LEAD) & (second >= _FIRST_WIDE)
    return (places >= 0) & (places <= last) & (is_usual | is_wide)

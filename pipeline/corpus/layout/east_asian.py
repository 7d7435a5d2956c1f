"""Line breaks between characters of Chinese and Japanese, whose words no blanks separate.

A break between lines of a paragraph becomes a blank in other scripts. Here it would cut a word of
kana in two; it is removed, as browsers do (CSS Text Module Level 3, section 4.1.3, "segment break
transformation rules"). Korean has blanks between words. Thai, Lao, Khmer and Burmese have blanks
between phrases, so a break may stand for one: it becomes a blank, too.
"""

from __future__ import annotations

import numpy as np

_RETURN = ord("\r")
_WIDTH = 3  # bytes of these characters in UTF-8; rare ideographs of 4 bytes keep their blank
# First bytes of U+3000 to U+9FFF: marks, kana and ideographs …
_FIRST_LEAD = 0xE3
_LAST_LEAD = 0xE9
# … and first two bytes of U+FF00 to U+FFFF, full-width marks and letters.
_WIDE_LEAD = 0xEF
_FIRST_WIDE = 0xBC


def remove_breaks(
    data: np.ndarray, breaks: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Remove the breaks between two such characters.

    Args:
        data: uint8, UTF-8.
        breaks: int64, ascending, bytes that stand between joined lines, none of them the last byte
            of `data`. A carriage return before one belongs to it.
        starts, stops: int64, places in `data`, none of them inside a break.

    Returns:
        `data` without these breaks, and the new places.
    """
    has_return = data[breaks - 1] == _RETURN
    before = breaks - has_return - _WIDTH
    is_between = _is_east_asian(data, before) & _is_east_asian(data, breaks + 1)
    if not is_between.any():
        return data, starts, stops
    removed = breaks[is_between]
    removed = np.sort(np.append(removed, removed[has_return[is_between]] - 1))
    return (
        np.delete(data, removed),
        starts - np.searchsorted(removed, starts),
        stops - np.searchsorted(removed, stops),
    )


def _is_east_asian(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Whether a character of three bytes, of Chinese or Japanese, begins at places; bool.

    Places may be before the data, and the data may end in the middle of a character.
    """
    lead = data[np.maximum(places, 0)]
    second = data[np.clip(places + 1, 0, len(data) - 1)]
    is_wide = (lead == _WIDE_LEAD) & (second >= _FIRST_WIDE)
    is_usual = (lead >= _FIRST_LEAD) & (lead <= _LAST_LEAD)
    return (places >= 0) & (is_usual | is_wide)

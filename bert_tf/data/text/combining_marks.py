"""Unicode's normal forms in time in proportion to a text, whatever marks it piles up.

Python sorts the marks after a letter by insertion, which takes time with the square of their
number: a megabyte of two marks in turns takes hours. Long runs are put into canonical order here
first (UAX 15; stable, by combining class), which changes nothing but the time.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Literal

# Runs that Python may sort itself; no script has letters with more marks (UAX 15's Stream-Safe Text
# Format allows 30).
_LONGEST_RUN = 64


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """What `unicodedata.normalize` returns."""
    if not text.isascii():
        text = _long_runs().sub(_in_order, text)
    return unicodedata.normalize(form, text)


@functools.cache
def _long_runs() -> re.Pattern[str]:
    """Runs of characters that are, or consist of, marks with a combining class."""
    marks = [
        chr(code_point)
        for code_point in range(0x20000)  # ideographs and private use follow
        if all(map(unicodedata.combining, unicodedata.normalize("NFD", chr(code_point))))
    ]
    return re.compile(f"[{re.escape(''.join(marks))}]{{{_LONGEST_RUN},}}+")


def _in_order(run: re.Match[str]) -> str:
    decomposed = "".join(unicodedata.normalize("NFD", mark) for mark in run[0])
    return "".join(sorted(decomposed, key=unicodedata.combining))

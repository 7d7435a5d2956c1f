"""Invents texts: of every Unicode plane, marks, directions, joiners, line ends, and long lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from random import Random

LONG_LINE = 10_000_000  # bytes
_WORDS = ("the", "River", "runs", "north", "of", "city", "where", "is", "it", "straße", "İstanbul")
_LINE_ENDS = (
    "\n",
    "\r\n",
    "\r",
    "\x85",
    "\u2028",
    "\u2029",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1e",
    "\n\n",
)
_BIDI = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_RIGHT_TO_LEFT = "אבגדהוזחטיךכלםמןנסעףפץצקרשתابتثجحخدذرزسشصضطظعغفقكلمنهوي٠١٢٣"
_EMOJI = (
    "😀",
    "👩\u200d👩\u200d👧\u200d👦",
    "🏳\ufe0f\u200d🌈",
    "👍🏽",
    "🇩🇪",
    "1\ufe0f\u20e3",
    "❤\ufe0f",
    "\U0001f3f4\U000e0067\U000e007f",
)
_INVISIBLE = ("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\ufe0f", "\u180e", "\0")
_MARKS = tuple(
    map(chr, (*range(0x300, 0x370), 0x0591, 0x064B, 0x093F, 0x0E31, 0x20DD, 0xFE20, 0x1D165))
)
_PAIRED = range(0xD800, 0xE000)


def _of_a_plane(random: Random) -> str:
    """Characters near each other: assigned, unassigned, of private use, or none."""
    plane = random.choice((0, 0, 0, 0, 1, 1, 2, 3, 14, 15, 16, random.randrange(17))) << 16
    first = plane + random.randrange(0x10000)
    codes = [plane | (first + random.randrange(64)) & 0xFFFF for _ in range(random.randint(1, 20))]
    codes.append(random.choice((plane | 0xFFFE, plane | 0xFFFF, 0xFDD0, 0xFFFD)))
    return "".join(chr(code) for code in codes if code not in _PAIRED)


def _marked(random: Random) -> str:
    count = random.choice((1, 2, 5, 50, 3000 if random.random() < 0.05 else 3))
    return random.choice("aeoخкक中 ") + "".join(random.choices(_MARKS, k=count))


def _right_to_left(random: Random) -> str:
    letters = random.choices(_RIGHT_TO_LEFT + " ", k=random.randint(1, 12))
    return random.choice(_BIDI) + "".join(letters) + random.choice(("", *_BIDI))


def _of(pieces: tuple[str, ...], most: int) -> Callable[[Random], str]:
    return lambda random: "".join(random.choices(pieces, k=random.randint(1, most)))


_KINDS: tuple[Callable[[Random], str], ...] = (
    lambda random: " ".join(random.choices(_WORDS, k=random.randint(1, 8))),
    lambda random: random.choice(_WORDS) + random.choice(".,?!;:'\"-—…。、") ,
    _of_a_plane,
    _of_a_plane,
    _marked,
    _right_to_left,
    _of(_EMOJI, 4),
    _of(_INVISIBLE, 3),
    _of(_LINE_ENDS, 2),
    lambda random: random.choice("aé中😀") * random.choice((2, 40, 99, 100, 101, 133, 134, 401)),
    lambda random: random.choice(("[MASK]", "[CLS]", "##s", "=1+1", "NaN", "\\ud800", "<b>", "\t")),
)  # fmt: skip


def invented_text(random: Random, most: int = 10) -> str:
    """Pieces of all kinds, some joined by blanks; valid Unicode."""
    pieces = [random.choice(_KINDS)(random) for _ in range(random.randint(1, most))]
    return "".join(piece + random.choice(("", "", " ", "\u00a0")) for piece in pieces)


def broken_text(random: Random) -> str:
    """Return an invented text with halves of surrogate pairs."""
    parts = [invented_text(random, 3) for _ in range(random.randint(2, 4))]
    return "".join(part + chr(random.choice(_PAIRED)) for part in parts)


def long_line(random: Random) -> str:
    """Return a line of LONG_LINE bytes: one word, many words, or no blank."""
    unit = random.choice(
        (*"aé中😀.\u0301\u200d\0\ufeff \u202e\U0010ffff\x85\u2028=\"", "a\u0301", "ab ", "river. ")
    )  # fmt: skip
    line = unit * (LONG_LINE // len(unit.encode()))
    at = random.randrange(len(line))
    return line[:at] + invented_text(random).replace("\n", " ").replace("\r", " ") + line[at:]


def is_settled(text: str) -> bool:
    """Return whether the class of each character is the same in every Unicode table in use."""
    categories = map(unicodedata.category, text)
    return all(
        category != "Cn" and category == then
        for category, then in zip(
            categories, map(unicodedata.ucd_3_2_0.category, text), strict=True
        )
    )

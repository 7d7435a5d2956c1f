"""Templates inside sentences of which a part shows: without it the sentence would have a hole.

All other templates are left out; what they show is known to their wiki alone. The names are those
of the English Wikipedia, which many others share.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

# Shows something of a template: its name as written and the values of its numbered parameters.
Show = Callable[[str, list[str]], str]

_NUMBER = re.compile(r"[-−+]?[\d.,/ ]+")
_FORMATNUM = "formatnum:"
_GROUPS = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")
_WITH_COMMAS = ("en", "simple", "ja", "ko", "th", "zh", "he")
_RANGE_WORDS = {"-": "–", "–": "–", "and": "and", "to": "to", "or": "or", "x": "x", "by": "by"}


def _first(_: str, values: list[str]) -> str:
    return values[0].strip() if values else ""


def _second(_: str, values: list[str]) -> str:
    return values[1].strip() if len(values) > 1 else ""


def _last(_: str, values: list[str]) -> str:
    return values[-1].strip() if len(values) > 1 else ""


def _always(text: str) -> Show:
    return lambda name, values: text


def _as_of(name: str, values: list[str]) -> str:
    return f"{name} {values[0].strip()}" if values else ""


def _quotation(_: str, values: list[str]) -> str:
    return f"\n\n{values[0].strip()}\n\n" if values else ""


def _conversion(_: str, values: list[str]) -> str:
    """The quantity that is converted, as in `{{convert|5|to|7|km|mi}}`."""
    parts: list[str] = []
    for value in map(str.strip, values):
        if _NUMBER.fullmatch(value):
            parts.append(value)
        elif value in _RANGE_WORDS and parts:
            parts.append(_RANGE_WORDS[value])
        else:
            return " ".join([*parts, value]).replace(" – ", "–") if parts else ""
    return ""


def _formatted(name: str, values: list[str], *, thousands: str) -> str:
    """`{{formatnum:1234567.8}}`; with R a number is shown without separators, with NOSEP as it is.

    A number that a template would give is not known.
    """
    number = name[len(_FORMATNUM) :].strip()
    how = values[0].strip().upper() if values else ""
    if how == "R":
        return number.replace(",", "")
    whole, _, fraction = number.partition(".")
    if how == "NOSEP" or not whole.lstrip("-−").isdecimal():
        return number if any(map(str.isdecimal, number)) else ""
    start = len(whole) - len(whole.lstrip("-−"))
    grouped = whole[:start] + _GROUPS.sub(thousands, whole[start:])
    return f"{grouped}.{fraction}" if fraction else grouped


_SHOWN: dict[str, Show] = {
    "'": _always("'"),
    "'s": _always("'s"),
    "abbr": _first,
    "as of": _as_of,
    "convert": _conversion,
    "cvt": _conversion,
    "lang": _second,
    "mdash": _always("—"),
    "nbsp": _always(" "),
    "ndash": _always("–"),
    "nihongo": _first,
    "nobr": _first,
    "nowrap": _first,
    "quote": _quotation,
    "sic": _first,
    "snd": _always(" – "),
    "spaced ndash": _always(" – "),
    "transl": _last,
    "transliteration": _last,
}


def thousands_of(language: str) -> str:
    """The separator of thousands in a language; none where that is not a comma."""
    return "," if language.partition("-")[0].lower() in _WITH_COMMAS else ""


def shown_part(name: str, thousands: str) -> Show | None:
    """What shows something of the template of a name, None if nothing of it is shown.

    Args:
        name: as written; of the parser function `formatnum` with the number.
        thousands: separator that the wiki's language has in numbers.
    """
    folded = name.lower()
    if folded.startswith(_FORMATNUM):
        return functools.partial(_formatted, thousands=thousands)
    if folded.startswith("lang-"):  # lang-de, lang-grc
        return _first
    return _SHOWN.get(folded)

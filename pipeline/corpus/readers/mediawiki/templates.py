"""Templates inside sentences of which a part shows: without it the sentence would have a hole.

All other templates are left out; what they show is known to their wiki alone. The names are those
of the English Wikipedia, which many others share.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# Shows something of a template: its name as written and the values of its numbered parameters.
Show = Callable[[str, list[str]], str]

_NUMBER = re.compile(r"[-−+]?[\d.,/ ]+")
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


def shown_part(name: str) -> Show | None:
    """What shows something of the template of a name, None if nothing of it is shown."""
    folded = name.lower()
    if folded.startswith("lang-"):  # lang-de, lang-grc
        return _first
    return _SHOWN.get(folded)

"""Tags as other tools spell them, written as the schemes have them: `B-PER`, `O`.

| files have | |
|---|---|
| `b-per`, `B_PER`, `PER-B` | another case, another separator, the prefix at the end |
| `B M E S`, `B M E W` | `M` is `I`, `W` is `S` |
| `0`, `o`, `OTHER`, `_` | words outside of entities |
| `3` | a number of a list of names |
"""

from __future__ import annotations

import collections
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from bert_tf.tasks.tagging.schemes import FRACTION_OF_A_SCHEME, OUTSIDE

_LETTERS = frozenset("BIELSUMW")
_FAMILIES = tuple(map(frozenset, ("BIES", "BILU", "BMES", "BMEW", "BIEW")))
_SAME = {"M": "I", "W": "S"}
_SEPARATORS = "-_:./|"
_OUTSIDES = frozenset(("0", "o", "other", "none", "null", "out", "outside"))
_MARKS = frozenset(("_", "-"))  # outside of entities, but tags of their own among parts of speech
_NUMBER = re.compile(r"-?\d+(\.0)?")  # -100 of words that do not count, 1.0 of a column with gaps
_SHOWN = 3


class _Form(NamedTuple):
    """Where the letter of a tag is, and what is between it and the type."""

    is_first: bool
    separator: str


class _Reading(NamedTuple):
    form: _Form
    letter: str
    kind: str


_USUAL = _Form(is_first=True, separator="-")


def are_numbers(tags: Collection[str]) -> bool:
    """Whether tags are numbers of a list of names, which a file does not have."""
    return bool(tags) and all(map(_NUMBER.fullmatch, tags))


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """The tags of a file that the schemes spell otherwise, and how.

    Args:
        counts: how often each tag occurs.
    """
    outside = {tag for tag in counts if tag.casefold() in _OUTSIDES}
    outside.discard(OUTSIDE)
    marks = {tag for tag in counts if tag in _MARKS}
    inside = {tag: count for tag, count in counts.items() if tag not in {OUTSIDE, *outside, *marks}}
    readings = _readings(inside, has_outside=len(inside) < len(counts))
    if not readings:
        # Of tags without a scheme, only the one that most words have.
        most = max(counts, key=counts.__getitem__, default=OUTSIDE)
        return {most: OUTSIDE} if most in outside and OUTSIDE not in counts else {}
    spelled = {tag: _SAME.get(each.letter, each.letter) for tag, each in readings.items()}
    spelled = {
        tag: f"{letter}-{readings[tag].kind}" if readings[tag].kind else letter
        for tag, letter in spelled.items()
    }
    return {tag: new for tag, new in spelled.items() if tag != new} | dict.fromkeys(
        [*outside, *marks], OUTSIDE
    )


def shown_spellings(spelled: Mapping[str, str]) -> str:
    """Some of the tags that are spelled otherwise, for a line to the user."""
    pairs = list(spelled.items())
    first, *others = [f"{tag!r} {{}}as {new}" for tag, new in pairs[:_SHOWN]]
    more = f" and {len(pairs) - _SHOWN:,} more alike" if len(pairs) > _SHOWN else ""
    return ", ".join([first.format("is read "), *(one.format("") for one in others)]) + more


def _readings(counts: Mapping[str, int], *, has_outside: bool) -> dict[str, _Reading]:
    """The tags in the form that nearly all have; none where that is no scheme's."""
    found: dict[_Form, dict[str, _Reading]] = collections.defaultdict(dict)
    for tag in counts:
        for reading in _possible(tag):
            found[reading.form][tag] = reading
    if not found:
        return {}

    def weight(form: _Form) -> tuple[int, bool]:
        return sum(counts[tag] for tag in found[form]), form == _USUAL

    best = max(found, key=weight)
    letters = {reading.letter for reading in found[best].values()}
    is_scheme = any(letters <= family for family in _FAMILIES) and (
        ("B" in letters and (len(letters) > 1 or has_outside))
        or (best == _USUAL and not letters <= set(_SAME))
    )
    is_most = weight(best)[0] >= FRACTION_OF_A_SCHEME * sum(counts.values())
    return found[best] if is_scheme and is_most else {}


def _possible(tag: str) -> Iterator[_Reading]:
    if len(tag) == 1:
        if tag.upper() in _LETTERS:
            yield _Reading(_Form(True, ""), tag.upper(), "")
    elif len(tag) > 2:
        for is_first, letter, separator, kind in (
            (True, tag[0], tag[1], tag[2:]),
            (False, tag[-1], tag[-2], tag[:-2]),
        ):
            if letter.upper() in _LETTERS and separator in _SEPARATORS:
                yield _Reading(_Form(is_first, separator), letter.upper(), kind)


def named(tags: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names in the place of numbers; a number that has none, and what is no number, as it is."""
    numbers = {f"{number}{end}": name for number, name in enumerate(names) for end in ("", ".0")}
    return [numbers.get(tag, tag) for tag in tags]

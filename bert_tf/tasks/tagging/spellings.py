"""Read the tags of a file in the spelling of the schemes: `b_per`, `PER-B` and the like.

`usual_spellings` finds the form that nearly all tags of a file have: the place and case of the
letter, the separator, and the letters themselves. Tags of another form stay, and so do all tags if
the form is that of no scheme.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from bert_tf.tasks.tagging.schemes import FRACTION_OF_A_SCHEME, OUTSIDE

_PREFIX_LETTERS = frozenset("BIELSUMW")
_FAMILIES = tuple(map(frozenset, ("BIES", "BILU", "BMES", "BMEW", "BIEW")))
_SAME = {"M": "I", "W": "S"}  # letters of the schemes for those of other families
_SEPARATORS = "-_:./|"
_OUTSIDES = frozenset(("0", "o", "other", "none", "null", "out", "outside"))
_MARKS = frozenset(("_", "-"))  # outside of entities, but tags of their own among parts of speech
_NUMBER = re.compile(r"-?\d+(\.0)?")  # -100 of words that do not count, 1.0 of a column with gaps
_SHOWN = 3  # spellings in a message


class _Form(NamedTuple):
    """How a tag is written.

    Attributes:
        is_first: whether the letter comes before the type.
        separator: the character between letter and type; "" for tags of a letter only.
    """

    is_first: bool
    separator: str


class _Reading(NamedTuple):
    """A way to read a tag: its form, its letter in upper case, and its type."""

    form: _Form
    letter: str
    kind: str


_USUAL = _Form(is_first=True, separator="-")


def are_numbers(tags: Collection[str]) -> bool:
    """Return whether there are tags, and all are whole numbers."""
    return bool(tags) and all(map(_NUMBER.fullmatch, tags))


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Find the tags of a file that the schemes spell otherwise.

    | tags of the file | meaning |
    |---|---|
    | `b-per`, `B_PER`, `PER-B` | another case, another separator, the prefix at the end |
    | `B M E S`, `B M E W` | `M` is `I`, `W` is `S` |
    | `0`, `o`, `OTHER`, `_` | words outside of entities |
    | `<O>`, `X`, `No-Entity`, any other | the same, if all tags but this one have a prefix |

    Args:
        counts: number of words by tag.

    Returns:
        The usual spelling by tag.
    """
    outside = {tag for tag in counts if tag.casefold() in _OUTSIDES}
    outside |= _without_prefix(counts)
    outside.discard(OUTSIDE)
    marks = {tag for tag in counts if tag in _MARKS}
    inside = {tag: count for tag, count in counts.items() if tag not in {OUTSIDE, *outside, *marks}}
    readings = _readings(inside, has_outside=len(inside) < len(counts))
    if not readings:
        # Without a scheme, only the most frequent tag can be outside. A mark that more than half of
        # the words have is not a tag of punctuation.
        most = max(counts, key=counts.__getitem__, default=OUTSIDE)
        is_mark = len(counts) > 1 and not any(map(str.isalnum, most))
        is_mark = is_mark and 2 * counts[most] > sum(counts.values())
        is_outside = (most in outside or is_mark) and OUTSIDE not in counts
        return {most: OUTSIDE} if is_outside else {}
    outside |= marks
    if not outside and OUTSIDE not in counts:
        outside |= {tag for tag, reading in readings.items() if reading.kind == OUTSIDE}  # B-O
    spelled: dict[str, str] = {}
    for tag, reading in readings.items():
        letter = _SAME.get(reading.letter, reading.letter)
        usual = f"{letter}-{reading.kind}" if reading.kind else letter
        if usual != tag:
            spelled[tag] = usual
    return spelled | dict.fromkeys(outside, OUTSIDE)


def _without_prefix(counts: Mapping[str, int]) -> set[str]:
    """Find a tag for words outside of entities: the only one without a prefix.

    `PER` beside `B-PER` is a mistake. So are several tags without a prefix, and one that hardly any
    word has.

    Returns:
        A set of the one tag; an empty set if there is none.
    """
    bare = {tag for tag in counts if not any(_possible(tag))}
    others = {tag: count for tag, count in counts.items() if tag not in bare}
    has_few = sum(others.values()) >= FRACTION_OF_A_SCHEME * sum(counts.values())
    if len(bare) != 1 or not others or has_few:
        return set()
    readings = _readings(others, has_outside=True)
    kinds = {reading.kind for reading in readings.values()}
    return bare if len(readings) == len(others) and not bare & kinds else set()


def shown_spellings(spelled: Mapping[str, str]) -> str:
    """List the first three spellings, and count the rest."""
    pairs = list(spelled.items())
    (first_tag, first_usual), *others = pairs[:_SHOWN]
    texts = [f"{first_tag!r} is read as {first_usual}"]
    texts += [f"{tag!r} as {usual}" for tag, usual in others]
    more = f" and {len(pairs) - _SHOWN:,} more alike" if len(pairs) > _SHOWN else ""
    return ", ".join(texts) + more


def _readings(counts: Mapping[str, int], *, has_outside: bool) -> dict[str, _Reading]:
    """Return the readings of tags in the form that nearly all have; {} if that is no scheme's.

    Args:
        counts: number of words by tag.
        has_outside: whether there are other tags, for words outside of entities.
    """
    readings: dict[_Form, dict[str, _Reading]] = collections.defaultdict(dict)
    for tag in counts:
        for reading in _possible(tag):
            readings[reading.form][tag] = reading
    if not readings:
        return {}

    def weight(form: _Form) -> tuple[int, bool]:
        return sum(counts[tag] for tag in readings[form]), form == _USUAL

    best = max(readings, key=weight)
    letters = {reading.letter for reading in readings[best].values()}
    has_beginning = "B" in letters and (len(letters) > 1 or has_outside)
    # `I-PER` shows a scheme by itself, a lone `M-…` or `W-…` does not.
    is_usual = best == _USUAL and not letters.issubset(_SAME)
    is_of_family = any(letters <= family for family in _FAMILIES)
    count, _ = weight(best)
    is_most = count >= FRACTION_OF_A_SCHEME * sum(counts.values())
    return readings[best] if is_of_family and (has_beginning or is_usual) and is_most else {}


def _possible(tag: str) -> Iterator[_Reading]:
    """Yield the ways to read a tag as a letter and a type."""
    if len(tag) == 1:
        if tag.upper() in _PREFIX_LETTERS:
            yield _Reading(_Form(True, ""), tag.upper(), "")
    elif len(tag) > 2:
        for is_first, letter, separator, kind in (
            (True, tag[0], tag[1], tag[2:]),
            (False, tag[-1], tag[-2], tag[:-2]),
        ):
            if letter.upper() in _PREFIX_LETTERS and separator in _SEPARATORS:
                yield _Reading(_Form(is_first, separator), letter.upper(), kind)


def named_tags(tags: Sequence[str], names: Sequence[str]) -> list[str]:
    """Replace numbers, such as `1` and `1.0`, by names; other tags and numbers stay."""
    name_of: dict[str, str] = {}
    for number, name in enumerate(names):
        name_of[f"{number}"] = name
        name_of[f"{number}.0"] = name
    return [name_of.get(tag, tag) for tag in tags]

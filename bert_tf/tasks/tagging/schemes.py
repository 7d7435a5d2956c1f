"""Tags of words as entities and back, in the schemes BIO (IOB2), BILOU and IOBES.

A tag is a prefix and a type: `B-PER` begins a person, `I-PER` goes on inside, `L-` (BILOU) or `E-`
(IOBES) is its last word and `U-` or `S-` its only one; `O` is outside. BIO has only the first two,
so its entities end where none goes on.

`entity_spans` reads tags as conlleval.pl of CoNLL-2000 does, and seqeval in its default mode: a tag
that cannot continue an entity begins one. `strict_spans` leaves such entities out, as seqeval's
strict mode does. Both are array functions over all sequences end to end.

Tags without a scheme (parts of speech) are an entity per word: their micro-averaged F1 is their
accuracy, if every word has a tag other than O.
"""

from __future__ import annotations

import collections
import enum
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges
from bert_tf.tasks.tagging.options import PLAIN, SCHEMES

OUTSIDE = "O"
NO_TYPE = "_"  # of tags that are only a letter


class Prefix(enum.IntEnum):
    """Place of a tagged word: outside of entities, or which part of one it is."""

    OUT = 0
    BEGIN = 1
    INSIDE = 2
    END = 3
    SINGLE = 4


_LETTERS = {"bio": "OBI", "iobes": "OBIES", "bilou": "OBILU"}  # by number of the prefix
_PREFIXES = {
    "O": Prefix.OUT,
    "B": Prefix.BEGIN,
    "I": Prefix.INSIDE,
    "E": Prefix.END,
    "L": Prefix.END,
    "S": Prefix.SINGLE,
    "U": Prefix.SINGLE,
}
_TAG = re.compile(r"([BIELSU])(?:-(.+))?", re.DOTALL)
FRACTION_OF_A_SCHEME = 0.95  # of the tags of words in entities; the others are mistakes

_PREFIX_LETTERS = frozenset("BIELSUMW")
_FAMILIES = tuple(map(frozenset, ("BIES", "BILU", "BMES", "BMEW", "BIEW")))
_SAME = {"M": "I", "W": "S"}
_SEPARATORS = "-_:./|"
_OUTSIDES = frozenset(("0", "o", "other", "none", "null", "out", "outside"))
_MARKS = frozenset(("_", "-"))  # outside of entities, but tags of their own among parts of speech
_NUMBER = re.compile(r"-?\d+(\.0)?")  # -100 of words that do not count, 1.0 of a column with gaps
_SHOWN = 3


class TagParts(NamedTuple):
    """A tag's prefix and type."""

    prefix: Prefix
    kind: str


class CodedTags(NamedTuple):
    """Tags of all words.

    Attributes:
        prefixes: int8 [words], values of `Prefix`.
        kinds: int32 [words], numbers of types, -1 outside of entities.
    """

    prefixes: np.ndarray
    kinds: np.ndarray


class Spans(NamedTuple):
    """Entities in order.

    Attributes:
        first: int64 [entities], the first word of each.
        last: int64 [entities], the one after the last.
        kinds: int32 [entities], numbers of types.
    """

    first: np.ndarray
    last: np.ndarray
    kinds: np.ndarray


def tag_parts(tag: str, scheme: str) -> TagParts | None:
    """Return prefix and type of a tag; None if it is not one of the scheme."""
    if tag == OUTSIDE:
        return TagParts(Prefix.OUT, "")
    if scheme == PLAIN:
        return TagParts(Prefix.SINGLE, tag) if tag else None
    match = _TAG.fullmatch(tag)
    if match is None or match[1] not in _LETTERS[scheme]:
        return None
    return TagParts(_PREFIXES[match[1]], match[2] or NO_TYPE)


def recognized_scheme(counts: Mapping[str, int]) -> str:
    """Return the scheme of tags; `plain` if most have no prefix.

    Args:
        counts: number of words by tag.
    """
    inside = {tag: count for tag, count in counts.items() if tag != OUTSIDE}
    matches_or_none = {tag: _TAG.fullmatch(tag) for tag in inside}
    matches = {tag: match for tag, match in matches_or_none.items() if match is not None}
    matching = sum(inside[tag] for tag in matches)
    if not matches or matching < FRACTION_OF_A_SCHEME * sum(inside.values()):
        return PLAIN
    # Part-of-speech tags of a single letter are no prefixes without types.
    if all(match[2] is None for match in matches.values()) and "B" not in matches:
        return PLAIN
    in_scheme = {
        scheme: sum(inside[tag] for tag, match in matches.items() if match[1] in _LETTERS[scheme])
        for scheme in SCHEMES
    }
    return max(SCHEMES, key=lambda scheme: in_scheme[scheme])


def kinds_of_tags(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """Return the types of tags, each once, in the order of their first occurrence."""
    parts = (tag_parts(tag, scheme) for tag in dict.fromkeys(tags))
    return tuple(dict.fromkeys(part.kind for part in parts if part is not None and part.kind))


def scheme_tags(kinds: Sequence[str], scheme: str) -> list[str]:
    """Return all tags of types but O: those of each prefix that the scheme has."""
    if scheme == PLAIN:
        return list(kinds)
    return [_tag(letter, kind) for kind in kinds for letter in _LETTERS[scheme][1:]]


def continuing_tag(tag: str, scheme: str) -> str:
    """Return the tag of further parts of a word: `I-` after `B-`, `L-` or `E-` after one that ends.

    O and tags without a scheme stay.
    """
    return _changed(tag, scheme, {Prefix.BEGIN: Prefix.INSIDE, Prefix.SINGLE: Prefix.END})


def closing_tag(tag: str, scheme: str) -> str:
    """Return the tag of a word whose entity ends in the word, if the scheme has one."""
    return _changed(tag, scheme, {Prefix.BEGIN: Prefix.SINGLE, Prefix.INSIDE: Prefix.END})


def inside_tag(tag: str, scheme: str) -> str:
    """Return the tag of a word amid an entity, given any tag of the entity."""
    return _changed(
        tag,
        scheme,
        {Prefix.BEGIN: Prefix.INSIDE, Prefix.END: Prefix.INSIDE, Prefix.SINGLE: Prefix.INSIDE},
    )


def _changed(tag: str, scheme: str, prefixes: Mapping[int, int]) -> str:
    """Return the tag of the same type with another prefix.

    The tag stays as it is if it has no prefix, or if the scheme lacks the other one.

    Args:
        tag: any tag.
        scheme: of the tag.
        prefixes: the new prefix by the old one.
    """
    parts = tag_parts(tag, scheme)
    if scheme == PLAIN or parts is None:
        return tag
    prefix = prefixes.get(parts.prefix, parts.prefix)
    letters = _LETTERS[scheme]
    return _tag(letters[prefix], parts.kind) if prefix < len(letters) else tag


def code_tags(tags: Sequence[str], scheme: str, numbers: dict[str, int]) -> CodedTags:
    """Turn tags into numbers; one that is not of the scheme counts as O.

    Args:
        tags: of all words.
        scheme: of the tags.
        numbers: of types by name; new ones are added.
    """
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(tag, len(seen)) for tag in tags), np.int64, len(tags))
    parts = [tag_parts(tag, scheme) or TagParts(Prefix.OUT, "") for tag in seen]
    prefixes = np.array([part.prefix for part in parts], np.int8)
    kinds = np.array(
        [
            numbers.setdefault(kind, len(numbers)) if prefix != Prefix.OUT else -1
            for prefix, kind in parts
        ],
        np.int32,
    )
    return CodedTags(prefixes[codes], kinds[codes]) if seen else CodedTags(prefixes, kinds)


def entity_spans(tags: CodedTags, offsets: np.ndarray) -> Spans:
    """Find the entities of any tags.

    An entity begins at a tag that says so (B, U, S), and at one inside that cannot go on: after O,
    after an end, after another type, at the begin of a sequence. It ends before the next begin or
    O.

    Args:
        tags: of all words, sequences end to end.
        offsets: int64 [sequences + 1], where each sequence begins; the last one ends the last.
    """
    prefixes, kinds = tags
    is_first = _sequence_starts(offsets)
    before = np.concatenate([[Prefix.OUT], prefixes[:-1]])[: len(prefixes)]
    before[is_first] = Prefix.OUT
    other_kind = np.concatenate([[-1], kinds[:-1]])[: len(kinds)] != kinds
    inside = prefixes != Prefix.OUT
    begins = inside & (
        np.isin(prefixes, (Prefix.BEGIN, Prefix.SINGLE))
        | np.isin(before, (Prefix.OUT, Prefix.END, Prefix.SINGLE))
        | other_kind
        | is_first
    )
    first = np.flatnonzero(begins)
    stops = np.flatnonzero(begins | ~inside)
    last = np.append(stops, len(prefixes))[np.searchsorted(stops, first, side="right")]
    return Spans(first, last, kinds[first])


def strict_spans(tags: CodedTags, offsets: np.ndarray, scheme: str) -> Spans:
    """Find the entities whose tags are well-formed, as seqeval's strict mode does.

    Runs of words that continue each other are cut first; those that do not begin with B, U or S, or
    in BILOU and IOBES do not end with their own tags, are left out.

    Args:
        tags: of all words, sequences end to end.
        offsets: int64 [sequences + 1], where each sequence begins; the last one ends the last.
        scheme: of the tags.
    """
    prefixes, kinds = tags
    is_first = _sequence_starts(offsets)
    before = np.concatenate([[Prefix.OUT], prefixes[:-1]])[: len(prefixes)]
    same_kind = np.concatenate([[-1], kinds[:-1]])[: len(kinds)] == kinds
    continues = (
        np.isin(before, (Prefix.BEGIN, Prefix.INSIDE))
        & np.isin(prefixes, (Prefix.INSIDE, Prefix.END))
        & same_kind
        & ~is_first
    )
    first = np.flatnonzero(~continues)
    last = np.append(first[1:], len(prefixes))[: len(first)]
    is_entity = np.isin(prefixes[first], (Prefix.BEGIN, Prefix.SINGLE))
    if scheme in ("bilou", "iobes"):
        is_entity &= np.isin(prefixes[last - 1], (Prefix.END, Prefix.SINGLE))
    return Spans(first[is_entity], last[is_entity], kinds[first[is_entity]])


def tags_of_spans(spans: Spans, words: int, names: Sequence[str], scheme: str) -> list[str]:
    """Write the well-formed tags of words from entities.

    Args:
        spans: in order; none shares a word with another.
        words: how many words there are.
        names: of the types, by number.
        scheme: to write the tags in.
    """
    prefixes = np.zeros(words, np.int64)
    kinds = np.zeros(words, np.int64)
    lengths = spans.last - spans.first
    covered = flat_ranges(spans.first, lengths)
    prefixes[covered] = Prefix.INSIDE
    kinds[covered] = np.repeat(spans.kinds, lengths)
    prefixes[spans.first] = Prefix.BEGIN
    if scheme != "bio":
        prefixes[spans.last - 1] = Prefix.END
        prefixes[spans.first[lengths == 1]] = Prefix.SINGLE
    if scheme == PLAIN:
        table = np.array([[OUTSIDE, *[name] * 4] for name in names or [""]], object)
    else:
        letters = "OBIES".translate({ord("E"): "L", ord("S"): "U"} if scheme == "bilou" else {})
        table = np.array([[_tag(letter, name) for letter in letters] for name in names or [""]])
    return table[kinds, prefixes].tolist()


def _tag(letter: str, kind: str) -> str:
    return letter if letter == OUTSIDE or kind == NO_TYPE else f"{letter}-{kind}"


def _sequence_starts(offsets: np.ndarray) -> np.ndarray:
    """Return which words begin a sequence, bool [words]."""
    words = int(offsets[-1])
    starts = np.zeros(words + 1, bool)
    starts[offsets[:-1]] = True
    return starts[:words]


class _Form(NamedTuple):
    """Where the letter of a tag is, and the separator before the type."""

    is_first: bool
    separator: str


class _Reading(NamedTuple):
    form: _Form
    letter: str
    kind: str


_USUAL = _Form(is_first=True, separator="-")


def are_numbers(tags: Collection[str]) -> bool:
    """Return whether there are tags, and all are whole numbers."""
    return bool(tags) and all(map(_NUMBER.fullmatch, tags))


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Find the tags of a file that the schemes spell otherwise.

        | files have | |
        |---|---|
        | `b-per`, `B_PER`, `PER-B` | another case, another separator, the prefix at the end |
        | `B M E S`, `B M E W` | `M` is `I`, `W` is `S` |
        | `0`, `o`, `OTHER`, `_` | words outside of entities |
        | `<O>`, `X`, `No-Entity`, any other | the same, where all tags but this one have a prefix |

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
        # Without a scheme, only the tag that most words have is outside. A mark that more than half
        # of the words have is no punctuation.
        most = max(counts, key=counts.__getitem__, default=OUTSIDE)
        is_mark = len(counts) > 1 and not any(map(str.isalnum, most))
        is_mark = is_mark and 2 * counts[most] > sum(counts.values())
        is_outside = (most in outside or is_mark) and OUTSIDE not in counts
        return {most: OUTSIDE} if is_outside else {}
    spelled = {tag: _SAME.get(each.letter, each.letter) for tag, each in readings.items()}
    spelled = {
        tag: f"{letter}-{readings[tag].kind}" if readings[tag].kind else letter
        for tag, letter in spelled.items()
    }
    outside |= marks
    if not outside and OUTSIDE not in counts:
        outside |= {tag for tag, each in readings.items() if each.kind == OUTSIDE}  # B-O
    return {tag: new for tag, new in spelled.items() if tag != new} | dict.fromkeys(
        outside, OUTSIDE
    )


def _without_prefix(counts: Mapping[str, int]) -> set[str]:
    """Return the only tag without a prefix, if it is not the type of another one.

    `PER` beside `B-PER` is a mistake, and so are two such tags, one of which may be outside, and
    one that hardly any word has.

    Returns:
        A set of one tag; an empty one if there is none.
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
    first, *others = [f"{tag!r} {{}}as {new}" for tag, new in pairs[:_SHOWN]]
    more = f" and {len(pairs) - _SHOWN:,} more alike" if len(pairs) > _SHOWN else ""
    return ", ".join([first.format("is read "), *(one.format("") for one in others)]) + more


def _readings(counts: Mapping[str, int], *, has_outside: bool) -> dict[str, _Reading]:
    """Return the tags in the form that nearly all have; none if that is no scheme's.

    Args:
        counts: number of words by tag.
        has_outside: whether other words are outside of entities.
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
    is_scheme = any(letters <= family for family in _FAMILIES) and (
        ("B" in letters and (len(letters) > 1 or has_outside))
        or (best == _USUAL and not letters <= set(_SAME))
    )
    is_most = weight(best)[0] >= FRACTION_OF_A_SCHEME * sum(counts.values())
    return readings[best] if is_scheme and is_most else {}


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


def named(tags: Sequence[str], names: Sequence[str]) -> list[str]:
    """Replace numbers by names; other tags, and numbers without one, stay."""
    numbers = {f"{number}{end}": name for number, name in enumerate(names) for end in ("", ".0")}
    return [numbers.get(tag, tag) for tag in tags]

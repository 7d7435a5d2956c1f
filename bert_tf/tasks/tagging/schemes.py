"""Tags of words as entities and back, in the schemes BIO (IOB2), BILOU and IOBES.

A tag is a prefix and a type: `B-PER` begins a person, `I-PER` continues it, `L-` (BILOU) or `E-`
(IOBES) is its last word, and `U-` or `S-` its only word; `O` is outside of entities. BIO only has
`B-` and `I-`, so its entities end before the first word that does not continue them.

`entity_spans` reads tags as conlleval.pl of CoNLL-2000 does, and seqeval in its default mode: a tag
that cannot continue an entity begins one. `strict_spans` leaves such entities out, as seqeval's
strict mode does. Both are array functions over all sequences end to end.

Tags without a scheme (parts of speech) are an entity per word: their micro-averaged F1 is their
accuracy, if every word has a tag other than O.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges
from bert_tf.tasks.tagging.options import PLAIN, SCHEMES

OUTSIDE = "O"
NO_TYPE = "_"  # type of tags that are only a letter


class Prefix(enum.IntEnum):
    """Place of a tagged word: outside of entities, or a part of an entity."""

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
        last: int64 [entities], the word after the last one of each.
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
    # Single letters without any B are tags of parts of speech, not prefixes without types.
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
    """Return all tags of types except O: one for each prefix of the scheme."""
    if scheme == PLAIN:
        return list(kinds)
    return [_tag(letter, kind) for kind in kinds for letter in _LETTERS[scheme][1:]]


def continuing_tag(tag: str, scheme: str) -> str:
    """Return the tag of further parts of a word: `I-` for `B-`, `L-` for `U-`, and `E-` for `S-`.

    Other tags stay as they are.
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
        scheme: scheme of the tag.
        prefixes: the new prefix by the old one.
    """
    parts = tag_parts(tag, scheme)
    if scheme == PLAIN or parts is None:
        return tag
    prefix = prefixes.get(parts.prefix, parts.prefix)
    letters = _LETTERS[scheme]
    return _tag(letters[prefix], parts.kind) if prefix < len(letters) else tag


def code_tags(tags: Sequence[str], scheme: str, numbers: dict[str, int]) -> CodedTags:
    """Turn tags into numbers; tags that are not of the scheme count as O.

    Args:
        tags: tags of all words.
        scheme: scheme of the tags.
        numbers: number of each type by name; new types are added.
    """
    # Each different tag is parsed once.
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(tag, len(seen)) for tag in tags), np.int64, len(tags))
    prefixes = np.zeros(len(seen), np.int8)
    kinds = np.full(len(seen), -1, np.int32)
    for number, tag in enumerate(seen):
        parts = tag_parts(tag, scheme)
        if parts is not None and parts.prefix != Prefix.OUT:
            prefixes[number] = parts.prefix
            kinds[number] = numbers.setdefault(parts.kind, len(numbers))
    return CodedTags(prefixes[codes], kinds[codes])


def entity_spans(tags: CodedTags, offsets: np.ndarray) -> Spans:
    """Find the entities of any tags, well-formed or not.

    An entity begins at a tag that says so (B, U, S), and at any other tag of an entity that cannot
    continue one: after O, after the end of an entity, after another type, and at the beginning of a
    sequence. It ends before the next entity or O.

    Args:
        tags: tags of all words, sequences end to end.
        offsets: int64 [sequences + 1], the first word of each sequence, and the number of words.
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

    The words are cut into runs whose tags continue each other. A run is an entity if it begins with
    B, U or S, and in BILOU and IOBES also ends with the tag of a last or only word.

    Args:
        tags: tags of all words, sequences end to end.
        offsets: int64 [sequences + 1], the first word of each sequence, and the number of words.
        scheme: scheme of the tags.
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
        spans: entities in order; none shares a word with another.
        words: number of words.
        names: names of the types, by number.
        scheme: scheme of the tags to write.
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
    # The tag of each type and prefix. Without any type, all words are outside.
    letters = _LETTERS["bilou" if scheme == "bilou" else "iobes"]
    table = []
    for name in names or [""]:
        if scheme == PLAIN:
            table.append([OUTSIDE, *[name] * (len(letters) - 1)])
        else:
            table.append([_tag(letter, name) for letter in letters])
    return np.array(table, object)[kinds, prefixes].tolist()


def _tag(letter: str, kind: str) -> str:
    return letter if letter == OUTSIDE or kind == NO_TYPE else f"{letter}-{kind}"


def _sequence_starts(offsets: np.ndarray) -> np.ndarray:
    """Return whether each word begins a sequence, bool [words]."""
    words = int(offsets[-1])
    starts = np.zeros(words + 1, bool)
    starts[offsets[:-1]] = True
    return starts[:words]

"""Tags of words as entities and back, in the schemes BIO (IOB2), BILOU and IOBES.

`entity_spans` reads tags as conlleval.pl of CoNLL-2000 does, and seqeval in its default mode: any
sequence has a reading, in which a tag that cannot continue an entity begins one. `strict_spans`
leaves such entities out, as seqeval does in its strict mode. Both are array functions over all
sequences at once, which lie end to end.

Tags without a scheme (parts of speech) are read as an entity per word, so what holds for entities
holds for them: their micro-averaged F1 is their accuracy, where every word has a tag other than O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.tasks.tagging.options import PLAIN, SCHEMES

OUTSIDE = "O"
NO_TYPE = "_"  # of tags that are a letter alone
OUT, BEGIN, INSIDE, END, SINGLE = range(5)  # prefixes
_LETTERS = {"bio": "OBI", "iobes": "OBIES", "bilou": "OBILU"}
_PREFIXES = {"O": OUT, "B": BEGIN, "I": INSIDE, "E": END, "L": END, "S": SINGLE, "U": SINGLE}
_TAG = re.compile(r"([BIELSU])(?:-(.+))?", re.DOTALL)
FRACTION_OF_A_SCHEME = 0.95  # of the tags of words in entities; the others are mistakes


class TagParts(NamedTuple):
    """What a tag says: a prefix (`BEGIN`, … of this module) and a type."""

    prefix: int
    kind: str


class CodedTags(NamedTuple):
    """Tags of all words.

    Attributes:
        prefixes: int8 [words].
        kinds: int32 [words], numbers of types; -1 outside of entities.
    """

    prefixes: np.ndarray
    kinds: np.ndarray


class Spans(NamedTuple):
    """Entities in order.

    Attributes:
        first, last: int64 [entities], the first word and the one after the last.
        kinds: int32 [entities], numbers of types.
    """

    first: np.ndarray
    last: np.ndarray
    kinds: np.ndarray


def tag_parts(tag: str, scheme: str) -> TagParts | None:
    """Prefix and type of a tag; None if it is not one of the scheme."""
    if tag == OUTSIDE:
        return TagParts(OUT, "")
    if scheme == PLAIN:
        return TagParts(SINGLE, tag) if tag else None
    match = _TAG.fullmatch(tag)
    if match is None or match[1] not in _LETTERS[scheme]:
        return None
    return TagParts(_PREFIXES[match[1]], match[2] or NO_TYPE)


def recognized_scheme(counts: Mapping[str, int]) -> str:
    """The scheme of tags: `bio`, `bilou`, `iobes`, or `plain` where most tags have no prefix.

    Args:
        counts: how often each tag occurs.
    """
    inside = {tag: count for tag, count in counts.items() if tag != OUTSIDE}
    matches = {tag: match for tag in inside if (match := _TAG.fullmatch(tag))}
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
    """The types that tags name, in the order of their first tags."""
    parts = (tag_parts(tag, scheme) for tag in dict.fromkeys(tags))
    return tuple(dict.fromkeys(part.kind for part in parts if part is not None and part.kind))


def scheme_tags(kinds: Sequence[str], scheme: str) -> list[str]:
    """Every tag that entities of these types may have."""
    if scheme == PLAIN:
        return list(kinds)
    return [_tag(letter, kind) for kind in kinds for letter in _LETTERS[scheme][1:]]


def code_tags(tags: Sequence[str], scheme: str, numbers: dict[str, int]) -> CodedTags:
    """Tags as numbers.

    Args:
        tags: of all words; one that is not of the scheme counts as O.
        scheme: of the tags.
        numbers: of the types; new ones are added.
    """
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(tag, len(seen)) for tag in tags), np.int64, len(tags))
    parts = [tag_parts(tag, scheme) or TagParts(OUT, "") for tag in seen]
    prefixes = np.array([part.prefix for part in parts], np.int8)
    kinds = np.array(
        [numbers.setdefault(kind, len(numbers)) if prefix != OUT else -1 for prefix, kind in parts],
        np.int32,
    )
    return CodedTags(prefixes[codes], kinds[codes]) if seen else CodedTags(prefixes, kinds)


def entity_spans(tags: CodedTags, offsets: np.ndarray) -> Spans:
    """The entities of any tags, as seqeval's default mode and conlleval find them.

    Args:
        tags: of all words.
        offsets: int64 [sequences + 1], where sequences begin and end.
    """
    prefixes, kinds = tags
    is_first = _sequence_starts(offsets)
    before = np.concatenate([[OUT], prefixes[:-1]])[: len(prefixes)]
    before[is_first] = OUT
    other_kind = np.concatenate([[-1], kinds[:-1]])[: len(kinds)] != kinds
    inside = prefixes != OUT
    begins = inside & (
        np.isin(prefixes, (BEGIN, SINGLE))
        | np.isin(before, (OUT, END, SINGLE))
        | other_kind
        | is_first
    )
    first = np.flatnonzero(begins)
    stops = np.flatnonzero(begins | ~inside)
    last = np.append(stops, len(prefixes))[np.searchsorted(stops, first, side="right")]
    return Spans(first, last, kinds[first])


def strict_spans(tags: CodedTags, offsets: np.ndarray, scheme: str) -> Spans:
    """The entities whose tags are well-formed, as seqeval's strict mode finds them.

    Args:
        tags, offsets: as of `entity_spans`.
        scheme: which sequences of tags are well-formed.
    """
    prefixes, kinds = tags
    is_first = _sequence_starts(offsets)
    before = np.concatenate([[OUT], prefixes[:-1]])[: len(prefixes)]
    same_kind = np.concatenate([[-1], kinds[:-1]])[: len(kinds)] == kinds
    continues = (
        np.isin(before, (BEGIN, INSIDE)) & np.isin(prefixes, (INSIDE, END)) & same_kind & ~is_first
    )
    first = np.flatnonzero(~continues)
    last = np.append(first[1:], len(prefixes))[: len(first)]
    is_entity = np.isin(prefixes[first], (BEGIN, SINGLE))
    if scheme in ("bilou", "iobes"):
        is_entity &= np.isin(prefixes[last - 1], (END, SINGLE))
    return Spans(first[is_entity], last[is_entity], kinds[first[is_entity]])


def tags_of_spans(spans: Spans, words: int, names: Sequence[str], scheme: str) -> list[str]:
    """The well-formed tags of entities.

    Args:
        spans: entities that share no word.
        words: number of words.
        names: of the types.
        scheme: to write the tags in.
    """
    prefixes = np.zeros(words, np.int64)
    kinds = np.zeros(words, np.int64)
    lengths = spans.last - spans.first
    covered = np.repeat(spans.first, lengths) + _counted(lengths)
    prefixes[covered] = INSIDE
    kinds[covered] = np.repeat(spans.kinds, lengths)
    prefixes[spans.first] = BEGIN
    if scheme != "bio":
        prefixes[spans.last - 1] = END
        prefixes[spans.first[lengths == 1]] = SINGLE
    if scheme == PLAIN:
        table = np.array([[OUTSIDE, *[name] * 4] for name in names or [""]], object)
    else:
        letters = "OBIES".translate({ord("E"): "L", ord("S"): "U"} if scheme == "bilou" else {})
        table = np.array([[_tag(letter, name) for letter in letters] for name in names or [""]])
    return table[kinds, prefixes].tolist()


def _tag(letter: str, kind: str) -> str:
    return letter if letter == OUTSIDE or kind == NO_TYPE else f"{letter}-{kind}"


def _sequence_starts(offsets: np.ndarray) -> np.ndarray:
    """Whether a word is the first of its sequence, bool [words]."""
    words = int(offsets[-1])
    starts = np.zeros(words + 1, bool)
    starts[offsets[:-1]] = True
    return starts[:words]


def _counted(lengths: np.ndarray) -> np.ndarray:
    """0, 1, … within each of some ranges that lie end to end."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)

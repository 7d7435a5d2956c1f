"""The table of detectors for labeled rows and rows to score; see `judged.py`.

Each looks for one fault that a person would notice:

| in | fault |
|---|---|
| labels, tags | lists that were not parsed, brackets and quotes that pair up across labels |
| words | lists, numbers 1, 2, 3, pieces of WordPiece, sentences without an end |
| texts | see `texts` |
| entities | offsets in units other than characters |
| columns that are not read | see `columns` |
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import shortened
from bert_tf.data.tables.detectors.columns import COLUMN_DETECTORS
from bert_tf.data.tables.detectors.texts import TEXT_DETECTORS
from bert_tf.data.tables.judged import (
    Details,
    Detector,
    ReadValues,
    Severity,
    counted,
    spread,
)
from bert_tf.data.tables.label_lists import is_label_list
from bert_tf.data.tables.value_forms import PIECE, is_cut, is_quoted

_OPENING = "[({<"
_CLOSING = "])}>"
_QUOTES = "'\"`"
_HALVES_OF_LISTS = 0.2  # of the distinct labels; fewer are names with an odd bracket
_ROWS_OF_LISTS = 0.2  # share of the sentences that begin and end like a list
_WORDS_IN_QUOTES = 0.5  # share of the words
_WEBANNO = re.compile(r".+\[\d+\]")  # PER[1], PER[2]|LOC[3]
_NUMBER = re.compile(r"(?:\d{1,6}-)?(\d{1,9})")  # 3, and 2-3 in WebAnno's sentence 2
_NUMBERED_WORDS = 0.8  # share of the words, in sentences of consecutive numbers
_FEWEST_NUMBERS = 3  # of a sentence; `1 2` may be its words
_LONGEST_SENTENCE = 150  # words; in newspapers and treebanks 1 of 1,000 sentences is longer
_IN_LONG_SENTENCES = 0.1  # share of the words
_PIECES = 0.01  # share of the words
_TAG = re.compile(r"[BIESLUM][-_]\w.*")
_TAGS_AS_WORDS = 0.5  # share of the words
_SEVERAL_TAGS = re.compile(r"[BI]-[^|;,]+(?:[|;,][BI]-[^|;,]+)+")
_FEWEST_ENTITIES = 3  # needed to tell units apart
# Shares of entities: most are cut in wrong units, hardly any in right ones.
_MANY_CUT = 0.5
_FEW_CUT = 0.1


def _several_labels(values: ReadValues) -> Details | None:
    """Find lists among labels of a task whose rows have a single one."""
    return None if values.has_label_lists or values.words else _listed_labels(values)


def _unread_lists(values: ReadValues) -> Details | None:
    """Find lists among labels and tags that should be parts of lists."""
    return _listed_labels(values) if values.has_label_lists or values.words else None


def _listed_labels(values: ReadValues) -> Details | None:
    lists = [label for label in values.label_counts if is_label_list(label)]
    if not lists:
        return None
    count = sum(values.label_counts[label] for label in lists)
    return {"count": counted(count, len(values.labels), "label"), "example": shortened(lists[0])}


def _halves_of_lists(values: ReadValues) -> Details | None:
    """Find labels that only open brackets or quotes, beside labels that only close them."""
    opening = [label for label in values.label_counts if _is_half(label, is_first=True)]
    closing = [label for label in values.label_counts if _is_half(label, is_first=False)]
    halves = len(opening) + len(closing)
    if not opening or not closing or halves < _HALVES_OF_LISTS * len(values.label_counts):
        return None
    return {"first": shortened(opening[0]), "last": shortened(closing[0])}


def _is_half(label: str, *, is_first: bool) -> bool:
    """Whether a label begins, or ends, with a bracket or quote without its partner.

    Parts of speech without letters such as `''` and `(` are labels of their own.
    """
    text = label.strip().strip(",;")
    if is_first and text.startswith("c("):  # of R: c("garden", "kitchen")
        text = text[1:]
    if len(text) < 2 or not any(map(str.isalnum, text)):
        return False
    mark = text[0] if is_first else text[-1]
    rest = text[1:] if is_first else text[:-1]
    if mark in _QUOTES:
        return mark not in rest
    own = _OPENING if is_first else _CLOSING
    partners = _CLOSING if is_first else _OPENING
    return mark in own and partners[own.index(mark)] not in rest


def _numbered_tags(values: ReadValues) -> Details | None:
    """Find tags with the number of their span, as WebAnno writes them."""
    if not values.words:
        return None
    tags = [tag for tag in values.label_counts if _WEBANNO.fullmatch(tag)]
    return {"example": shortened(tags[0])} if tags else None


def _listed_words(values: ReadValues) -> Details | None:
    """Find words with the marks of a list around them: `('anna',` and `'oslo')`."""
    sentences = [words for words in values.words if len(words) > 1]
    lists = [words for words in sentences if _is_list(words)]
    if len(lists) > _ROWS_OF_LISTS * len(sentences):
        return {"first": shortened(lists[0][0]), "last": shortened(lists[0][-1])}
    words = [word for sentence in sentences for word in sentence]
    quoted = [word for word in words if is_quoted(word.strip(",;[](){}"))]
    if len(quoted) > _WORDS_IN_QUOTES * len(words):
        return {"first": shortened(quoted[0]), "last": shortened(quoted[-1])}
    return None


def _is_list(words: Sequence[str]) -> bool:
    first, last = words[0].strip(), words[-1].strip()
    if len(first) < 2 or first[0] not in _OPENING:
        return False
    ends_well = last.endswith(_CLOSING[_OPENING.index(first[0])])
    return ends_well and all(word.endswith((",", ";")) for word in words[:-1])


def _numbered_words(values: ReadValues) -> Details | None:
    """Find sentences whose words are consecutive numbers: the column of numbers is read."""
    if values.is_words_column_given:
        return None
    counting = [words for words in values.words if _counts(words)]
    longest = max(counting, key=len, default=())
    words = sum(map(len, values.words))
    if len(longest) < _FEWEST_NUMBERS or sum(map(len, counting)) <= _NUMBERED_WORDS * words:
        return None
    return {
        "count": counted(len(counting), len(values.words), "sentence"),
        "example": ", ".join(longest[:_FEWEST_NUMBERS]),
    }


def _counts(words: Sequence[str]) -> bool:
    """Whether words are consecutive numbers, such as those of a sentence's words: 3, 4, 5."""
    numbers = []
    for word in words:
        match = _NUMBER.fullmatch(word)
        if match is None:
            return False
        numbers.append(int(match[1]))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _long_sentences(values: ReadValues) -> Details | None:
    """Find many words in overlong sentences, whose ends are not marked in the file."""
    if not values.words_have_lines:
        return None
    lengths = np.array([len(words) for words in values.words])
    is_long = lengths > _LONGEST_SENTENCE
    if lengths[is_long].sum() <= _IN_LONG_SENTENCES * lengths.sum():
        return None
    longest = int(np.argmax(lengths))
    return {
        "count": counted(int(is_long.sum()), len(lengths), "sentence"),
        "most": f"{_LONGEST_SENTENCE}",
        "words": f"{lengths[longest]:,}",
        "line": f"{values.places.at(values.lines[longest])}",
    }


def _pieces(values: ReadValues) -> Details | None:
    """Find words that were already split into pieces of WordPiece."""
    words = [word for sentence in values.words for word in sentence]
    pieces = [word for word in words if PIECE.fullmatch(word)]
    if len(pieces) <= _PIECES * len(words):
        return None
    return {"count": counted(len(pieces), len(words), "word"), "example": shortened(pieces[0])}


def _quoted_labels(values: ReadValues) -> Details | None:
    """Find quotes around all labels."""
    labels = list(values.label_counts)
    if values.words or len(labels) < 2 or not all(map(is_quoted, labels)):
        return None
    return {"first": labels[0], "second": labels[1]}


def _tags_as_words(values: ReadValues) -> Details | None:
    """Find words that are tags such as O and B-PER: the columns are exchanged."""
    words = collections.Counter(word for sentence in values.words for word in sentence)
    tags = [word for word in words if word == "O" or _TAG.fullmatch(word)]
    if len(tags) < 2 or sum(words[tag] for tag in tags) < _TAGS_AS_WORDS * words.total():
        return None
    return {"example": ", ".join(tags[:_FEWEST_NUMBERS])}


def _several_tags(values: ReadValues) -> Details | None:
    """Find words with several tags, as of nested entities."""
    if not values.words:
        return None
    tags = [tag for tag in values.label_counts if _SEVERAL_TAGS.fullmatch(tag)]
    if not tags:
        return None
    count = sum(values.label_counts[tag] for tag in tags)
    return {"count": counted(count, len(values.labels), "word"), "example": shortened(tags[0])}


def _units(width: Callable[[np.ndarray], np.ndarray]) -> Callable[[ReadValues], Details | None]:
    """Make a detector of offsets that count units of an encoding instead of characters.

    Such offsets only differ after the first character of several units. There, entities begin or
    end inside words when characters are counted, but not when units are counted.

    Args:
        width: returns the units of code points, int64 [n], for uint32 [n].
    """

    def find(values: ReadValues) -> Details | None:
        entities = 0
        cut = 0  # entities that begin or end inside a word, by characters
        still_cut = 0  # the same by units
        example = ""
        for text, starts, ends in _texts_with_entities(values):
            widths = width(np.frombuffer(text.encode("utf-32-le"), np.uint32))
            if (widths == 1).all():
                continue
            places = np.concatenate([[0], np.cumsum(widths)])  # of each character, in units
            is_later = starts > int(np.argmax(widths > 1))
            for start, end in zip(starts[is_later].tolist(), ends[is_later].tolist(), strict=True):
                entities += 1
                shifted = np.searchsorted(places, [start, end])
                is_between = (places[np.minimum(shifted, len(text))] != [start, end]).any()
                if is_between or is_cut(text, *shifted.tolist()):
                    still_cut += 1
                if is_cut(text, start, end):
                    cut += 1
                    example = example or text[start:end]
        if entities < _FEWEST_ENTITIES or cut <= _MANY_CUT * entities:
            return None
        if still_cut > _FEW_CUT * entities:
            return None
        return {"count": counted(cut, entities, "entity"), "example": shortened(example)}

    return find


class _Shift(NamedTuple):
    """A mistake in counting the characters of an entity.

    Attributes:
        start, end: numbers to add to the offsets to correct them.
        meant: the mistake and its correction, a clause that follows "if".
    """

    start: int
    end: int
    meant: str


_SHIFTS = (
    _Shift(0, 1, "ends were the last characters of entities: add 1 to each"),
    _Shift(
        -1,
        0,
        "characters were counted from 1, and ends were the last ones: subtract 1 from each start",
    ),
    _Shift(-1, -1, "characters were counted from 1: subtract 1 from starts and ends"),
    _Shift(1, 1, "texts had lost their first character: add 1 to starts and ends"),
    _Shift(2, 2, "texts had lost their first two characters: add 2 to starts and ends"),
)


def _shifted_offsets(values: ReadValues) -> Details | None:
    """Find offsets that are all off by one or two."""
    entities = 0
    cut = 0  # entities that begin or end inside a word
    still_cut = np.zeros(len(_SHIFTS), np.int64)  # the same after each correction
    example = ""
    for text, starts, ends in _texts_with_entities(values):
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            entities += 1
            if is_cut(text, start, end):
                cut += 1
                example = example or text[start:end]
            still_cut += [
                is_cut(text, max(0, start + shift.start), end + shift.end) for shift in _SHIFTS
            ]
    if entities < _FEWEST_ENTITIES or cut <= _MANY_CUT * entities:
        return None
    best = int(still_cut.argmin())
    if still_cut[best] > _FEW_CUT * entities:
        return None
    return {
        "count": counted(cut, entities, "entity"),
        "example": shortened(example),
        "meant": _SHIFTS[best].meant,
    }


def _texts_with_entities(values: ReadValues) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield texts of a sample that have entities, and these entities' starts and ends."""
    if values.entities is None:
        return
    (texts,) = values.texts.values()
    bounds = np.searchsorted(values.entities.rows, np.arange(len(texts) + 1))
    for row in spread(len(texts)):
        first, last = bounds[row : row + 2].tolist()
        if first < last:
            yield texts[row], values.entities.starts[first:last], values.entities.ends[first:last]


def _utf16_units(points: np.ndarray) -> np.ndarray:
    """Return the UTF-16 units of each code point, int64 [n]: 2 beyond the basic plane."""
    return 1 + (points > 0xFFFF)


def _utf8_bytes(points: np.ndarray) -> np.ndarray:
    """Return the bytes of each code point in UTF-8, int64 [n]."""
    return 1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)


ROW_DETECTORS: tuple[Detector[ReadValues], ...] = (
    Detector(
        name="several labels",
        severity=Severity.ERROR,
        message="{count} are lists such as {example}, and a row has one label here",
        remedy="fine-tune for any number of labels of a text, or keep rows with one label, without "
        "the marks of a list",
        find=_several_labels,
    ),
    Detector(
        name="unread lists",
        severity=Severity.ERROR,
        message="{count} are lists that cannot be read, such as {example}",
        remedy='write lists as JSON: ["a", "b"]',
        find=_unread_lists,
    ),
    Detector(
        name="halves of lists",
        severity=Severity.ERROR,
        message="labels are parts of lists that were cut: {first} begins what {last} ends",
        remedy='write several labels as JSON, ["a", "b"], and a single one without marks',
        find=_halves_of_lists,
    ),
    Detector(
        name="numbered tags",
        severity=Severity.ERROR,
        message="tags have the numbers of WebAnno's spans, such as {example}",
        remedy="export CoNLL 2003 or CoNLL-U from WebAnno or INCEpTION",
        find=_numbered_tags,
    ),
    Detector(
        name="listed words",
        severity=Severity.ERROR,
        message="words have the marks of a list: {first} to {last}",
        remedy='write the words of a row as JSON, ["a", "b"], or with blanks between them',
        find=_listed_words,
    ),
    Detector(
        name="numbered words",
        severity=Severity.ERROR,
        error=UsageError,
        message="the words of {count} are numbers that count ({example}, …)",
        remedy="name the column of the words, --tokens-column 2, and that of the tags, if it is "
        "not the last, --tag-column 3 (in score --column tokens=2)",
        find=_numbered_words,
    ),
    Detector(
        name="tags as words",
        severity=Severity.ERROR,
        error=UsageError,
        message="words are tags ({example}, …)",
        remedy="name the column of the words, --tokens-column 2, and that of the tags, "
        "--tag-column 1 (in tables by their names)",
        find=_tags_as_words,
    ),
    Detector(
        name="several tags",
        severity=Severity.WARNING,
        message="{count} have several tags, such as {example}, which are read as a type of their "
        "own",
        remedy="keep one tag of each word, that of the outer entity, say",
        find=_several_tags,
    ),
    Detector(
        name="quoted labels",
        severity=Severity.WARNING,
        message="all labels have quotes, such as {first} and {second}, which belong to them here",
        remedy='write cells with commas as CSV does, "a, b", and the others without quotes',
        find=_quoted_labels,
    ),
    Detector(
        name="pieces",
        severity=Severity.WARNING,
        message="{count} begin with '##', such as {example}, as the pieces of WordPiece do; the "
        "tokenizer reads them as '#', '#' and a word",
        remedy="join the pieces of a word",
        find=_pieces,
    ),
    Detector(
        name="long sentences",
        severity=Severity.WARNING,
        message="{count} have more than {most} words, the longest {words}, at line {line}",
        remedy="blank lines or another number of the sentence end one; check that they are there",
        find=_long_sentences,
    ),
    Detector(
        name="UTF-16 offsets",
        severity=Severity.ERROR,
        message="{count} after an emoji or the like begin or end inside a word ({example}), and "
        "none would if offsets counted UTF-16 units, as in JavaScript and Java",
        remedy="count characters: in Python "
        "len(text.encode('utf-16-le')[: 2 * start].decode('utf-16-le')), and likewise the end",
        find=_units(_utf16_units),
    ),
    Detector(
        name="UTF-8 offsets",
        severity=Severity.ERROR,
        message="{count} after a letter that is not ASCII begin or end inside a word "
        "({example}), and none would if offsets counted bytes of UTF-8, as in Go and Rust",
        remedy="count characters: in Python len(text.encode()[:start].decode()), and likewise the "
        "end",
        find=_units(_utf8_bytes),
    ),
    Detector(
        name="shifted offsets",
        severity=Severity.ERROR,
        message="{count} begin or end inside a word ({example}), and hardly any would if {meant}",
        remedy="offsets are those of the first character, from 0, and of the one after the last",
        find=_shifted_offsets,
    ),
    *TEXT_DETECTORS,
    *COLUMN_DETECTORS,
)

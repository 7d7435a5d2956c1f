"""The table of detectors for labeled rows and rows to score; see `judged.py`.

Each looks at one thing that a person would notice:

| in | what |
|---|---|
| labels, tags | lists that nobody has parsed, brackets and quotes that pair up across them |
| words | lists, numbers 1, 2, 3, pieces of WordPiece, sentences without an end |
| texts | base64 between texts |
| entities | offsets in units other than characters |
| columns that are not read | splits, second texts, judgments of pairs |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity, shortened
from bert_tf.data.tables.judged import Detector, Found, ReadValues, Severity, spread
from bert_tf.data.tables.value_forms import (
    PIECE,
    are_truths,
    is_blob,
    is_cut,
    is_label_list,
    is_split,
    second_text,
)

_OPENING, _CLOSING, _QUOTES = "[({<", "])}>", "'\"`"
_HALVES_OF_LISTS = 0.2  # of the distinct labels; fewer are names with an odd bracket
_ROWS_OF_LISTS = 0.2  # that begin and end as a list does
_WORDS_IN_QUOTES = 0.5
_WEBANNO = re.compile(r".+\[\d+\]")  # PER[1], PER[2]|LOC[3]
_NUMBER = re.compile(r"(?:\d{1,6}-)?(\d{1,9})")  # 3, and 2-3 in WebAnno's sentence 2
_NUMBERED_WORDS = 0.8  # of the words are in sentences that count
_FEWEST_NUMBERS = 3  # of a sentence; `1 2` may be its words
_LONGEST_SENTENCE = 150  # words; in newspapers and treebanks 1 of 1,000 sentences is longer
_IN_LONG_SENTENCES = 0.1  # of the words
_PIECES = 0.01  # of the words
_FEWEST_BLOBS, _BLOBS = 2, 0.005  # number and share of texts
_FEWEST_ENTITIES = 3  # that tell units apart
_MANY_CUT, _FEW_CUT = 0.5, 0.1  # of entities: nearly all in wrong units, hardly any in right ones
_NAMES_OF_JUDGMENTS = frozenset(  # names, and last words of names
    (
        *("score", "similarity", "label", "labels", "duplicate", "match", "relevance", "quality"),
        *("paraphrase", "target", "class", "y", "judgment", "rating"),
    )
)


def _counted(part: int, whole: int, noun: str) -> str:
    return f"{part:,} of {quantity(whole, noun)}"


def _several_labels(values: ReadValues) -> Found | None:
    """Find lists among labels of a task whose rows have a single one."""
    return None if values.has_label_lists or values.words else _listed_labels(values)


def _unread_lists(values: ReadValues) -> Found | None:
    """Find lists among labels and tags that should be parts of lists."""
    return _listed_labels(values) if values.has_label_lists or values.words else None


def _listed_labels(values: ReadValues) -> Found | None:
    lists = [label for label in values.label_counts if is_label_list(label)]
    if not lists:
        return None
    count = sum(values.label_counts[label] for label in lists)
    return {"count": _counted(count, len(values.labels), "label"), "example": shortened(lists[0])}


def _halves_of_lists(values: ReadValues) -> Found | None:
    """Labels that only open brackets or quotes, beside labels that only close them."""
    opening = [label for label in values.label_counts if _is_half(label, is_first=True)]
    closing = [label for label in values.label_counts if _is_half(label, is_first=False)]
    found = len(opening) + len(closing)
    if not opening or not closing or found < _HALVES_OF_LISTS * len(values.label_counts):
        return None
    return {"first": shortened(opening[0]), "last": shortened(closing[0])}


def _is_half(label: str, *, is_first: bool) -> bool:
    """Whether a label begins, or ends, with a bracket or quote without its partner.

    Parts of speech without letters such as `''` and `(` are labels of their own.
    """
    text = label.strip().strip(",;")
    if len(text) < 2 or not any(map(str.isalnum, text)):
        return False
    mark, rest = (text[0], text[1:]) if is_first else (text[-1], text[:-1])
    if mark in _QUOTES:
        return mark not in rest
    own, others = (_OPENING, _CLOSING) if is_first else (_CLOSING, _OPENING)
    return mark in own and others[own.index(mark)] not in rest


def _numbered_tags(values: ReadValues) -> Found | None:
    if not values.words:
        return None
    tags = [tag for tag in values.label_counts if _WEBANNO.fullmatch(tag)]
    return {"example": shortened(tags[0])} if tags else None


def _listed_words(values: ReadValues) -> Found | None:
    """Words with the marks of a list around them: `('anna',` and `'oslo')`."""
    sentences = [words for words in values.words if len(words) > 1]
    lists = [words for words in sentences if _is_list(words)]
    if len(lists) > _ROWS_OF_LISTS * len(sentences):
        return {"first": shortened(lists[0][0]), "last": shortened(lists[0][-1])}
    words = [word for each in sentences for word in each]
    quoted = [word for word in words if _is_quoted(word.strip(",;[](){}"))]
    if len(quoted) > _WORDS_IN_QUOTES * len(words):
        return {"first": shortened(quoted[0]), "last": shortened(quoted[-1])}
    return None


def _is_list(words: Sequence[str]) -> bool:
    first, last = words[0].strip(), words[-1].strip()
    if len(first) < 2 or first[0] not in _OPENING:
        return False
    ends_well = last.endswith(_CLOSING[_OPENING.index(first[0])])
    return ends_well and all(word.endswith((",", ";")) for word in words[:-1])


def _is_quoted(word: str) -> bool:
    return len(word) > 2 and word[0] == word[-1] and word[0] in _QUOTES


def _numbered_words(values: ReadValues) -> Found | None:
    if values.is_words_column_given:
        return None
    counting = [words for words in values.words if _counts(words)]
    longest = max(counting, key=len, default=())
    words = sum(map(len, values.words))
    if len(longest) < _FEWEST_NUMBERS or sum(map(len, counting)) <= _NUMBERED_WORDS * words:
        return None
    return {
        "count": _counted(len(counting), len(values.words), "sentence"),
        "example": ", ".join(longest[:_FEWEST_NUMBERS]),
    }


def _counts(words: Sequence[str]) -> bool:
    """Whether words are the numbers of a sentence's words: 1, 2, 3, from any number on."""
    numbers = [int(found[1]) for found in map(_NUMBER.fullmatch, words) if found]
    return len(numbers) == len(words) and numbers == list(
        range(numbers[0], numbers[0] + len(numbers))
    )


def _long_sentences(values: ReadValues) -> Found | None:
    if not values.words_have_lines:
        return None
    lengths = np.array([len(words) for words in values.words])
    is_long = lengths > _LONGEST_SENTENCE
    if lengths[is_long].sum() <= _IN_LONG_SENTENCES * lengths.sum():
        return None
    longest = int(np.argmax(lengths))
    return {
        "count": _counted(int(is_long.sum()), len(lengths), "sentence"),
        "most": f"{_LONGEST_SENTENCE}",
        "words": f"{lengths[longest]:,}",
        "line": f"{values.places.at(values.lines[longest])}",
    }


def _pieces(values: ReadValues) -> Found | None:
    words = [word for each in values.words for word in each]
    pieces = [word for word in words if PIECE.fullmatch(word)]
    if len(pieces) <= _PIECES * len(words):
        return None
    return {"count": _counted(len(pieces), len(words), "word"), "example": shortened(pieces[0])}


def _blobs(values: ReadValues) -> Found | None:
    for column, texts in values.texts.items():
        chosen = [texts[row] for row in spread(len(texts))]
        blobs = [text for text in chosen if is_blob(text)]
        if len(blobs) >= max(_FEWEST_BLOBS, _BLOBS * len(chosen)):
            count = _counted(len(blobs), len(chosen), "text")
            return {"column": repr(column), "count": count, "example": shortened(blobs[0], 40)}
    return None


def _units(width: Callable[[np.ndarray], np.ndarray]) -> Callable[[ReadValues], Found | None]:
    """Make a detector of offsets that count units, `width` of code points, not characters.

    Such offsets differ only after the first character of several units. There, entities would
    begin or end inside of words, and would not if the units were counted.
    """

    def find(values: ReadValues) -> Found | None:
        counted = 0
        cut = 0
        still_cut = 0
        example = ""
        for text, starts, ends in _texts_with_entities(values):
            widths = width(np.frombuffer(text.encode("utf-32-le"), np.uint32))
            if (widths == 1).all():
                continue
            places = np.concatenate([[0], np.cumsum(widths)])  # of each character, in units
            is_later = starts > int(np.argmax(widths > 1))
            for start, end in zip(starts[is_later].tolist(), ends[is_later].tolist(), strict=True):
                counted += 1
                shifted = np.searchsorted(places, [start, end])
                is_between = (places[np.minimum(shifted, len(text))] != [start, end]).any()
                if is_between or is_cut(text, *shifted.tolist()):
                    still_cut += 1
                if is_cut(text, start, end):
                    cut += 1
                    example = example or text[start:end]
        if counted < _FEWEST_ENTITIES or cut <= _MANY_CUT * counted:
            return None
        if still_cut > _FEW_CUT * counted:
            return None
        return {"count": _counted(cut, counted, "entity"), "example": shortened(example)}

    return find


def _texts_with_entities(values: ReadValues) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    if values.entities is None:
        return
    (texts,) = values.texts.values()
    bounds = np.searchsorted(values.entities.rows, np.arange(len(texts) + 1))
    for row in spread(len(texts)):
        first, last = bounds[row : row + 2].tolist()
        if first < last:
            yield texts[row], values.entities.starts[first:last], values.entities.ends[first:last]


def _utf16_units(points: np.ndarray) -> np.ndarray:
    """Return the UTF-16 units of code points, int64 [n]: 2 beyond the basic plane."""
    return 1 + (points > 0xFFFF)


def _utf8_bytes(points: np.ndarray) -> np.ndarray:
    """Return the bytes of code points in UTF-8, int64 [n]."""
    return 1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)


def _unused_splits(values: ReadValues) -> Found | None:
    for name, cells in values.others.items():
        if is_split(name, cells):
            found = sorted({str(cell).strip().lower() for cell in cells if cell not in (None, "")})
            kinds = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
            return {"column": repr(name), "kinds": kinds}
    return None


def _unused_second_text(values: ReadValues) -> Found | None:
    if not values.may_be_pair:
        return None
    first = next(iter(values.texts), "")
    second = second_text(first, values.others.keys())
    if second is None or not any(str(cell or "").strip() for cell in values.others[second]):
        return None
    return {"first": repr(first), "second": repr(second), "column": second}


def _judged_pairs(values: ReadValues) -> Found | None:
    """Find a column that says which pairs match, though all are taken as matches."""
    if not values.pairs_match:
        return None
    for name, cells in values.others.items():
        if are_truths(cells) and not is_split(name, cells):
            return {"quoted": repr(name), "column": name, **_text_columns(values)}
    return None


def _scored_pairs(values: ReadValues) -> Found | None:
    """Find a column whose name promises scores, though all pairs are taken as matches."""
    if not values.pairs_match:
        return None
    for name, cells in values.others.items():
        last_word = re.split(r"[\W_]+", name.lower())[-1]
        is_judgment = bool({name.lower(), last_word} & _NAMES_OF_JUDGMENTS)
        if is_judgment and len({str(cell) for cell in cells if cell not in (None, "")}) > 1:
            return {"quoted": repr(name)}
    return None


def _text_columns(values: ReadValues) -> dict[str, str]:
    first, second, *_ = values.used
    return {"first": first, "second": second}


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
        message="{count} after an emoji or the like begin or end inside of a word ({example}), and "
        "none would if offsets counted UTF-16 units, as in JavaScript and Java",
        remedy="count characters: in Python "
        "len(text.encode('utf-16-le')[: 2 * start].decode('utf-16-le')), and likewise the end",
        find=_units(_utf16_units),
    ),
    Detector(
        name="UTF-8 offsets",
        severity=Severity.ERROR,
        message="{count} after a letter that is not ASCII begin or end inside of a word "
        "({example}), and none would if offsets counted bytes of UTF-8, as in Go and Rust",
        remedy="count characters: in Python len(text.encode()[:start].decode()), and likewise the "
        "end",
        find=_units(_utf8_bytes),
    ),
    Detector(
        name="base64",
        severity=Severity.WARNING,
        message="column {column} holds base64 or hexadecimal digits in {count}, such as {example}",
        remedy="decode them, or remove such rows",
        find=_blobs,
    ),
    Detector(
        name="unused splits",
        severity=Severity.WARNING,
        message="all rows are used, whatever {column} is ({kinds})",
        remedy="split the file",
        find=_unused_splits,
    ),
    Detector(
        name="unused second text",
        severity=Severity.WARNING,
        message="{first} is read without {second}",
        remedy="for pairs of texts give --text-pair-column {column}",
        find=_unused_second_text,
    ),
    Detector(
        name="judged pairs",
        severity=Severity.ERROR,
        error=UsageError,
        message="column {quoted} is not used: the loss takes every row as a match, also those "
        "where it says no",
        remedy="learn from it with --loss cosent --text-column {first} --text-pair-column "
        "{second} --label-column {column}, or remove the column and the rows that do not match",
        find=_judged_pairs,
    ),
    Detector(
        name="scored pairs",
        severity=Severity.WARNING,
        message="column {quoted} is not used: the loss takes every row as a match",
        remedy="--loss cosent learns from a column of numbers",
        find=_scored_pairs,
    ),
)

"""Words before and after full stops, by which abbreviations are told from ends of sentences."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.files import toml_beside
from bert_tf.base.kernels import fnv1a
from pipeline.corpus.characters import (
    DASH,
    DIGIT,
    LOWER,
    OPENER,
    OTHER,
    QUOTE,
    UPPER,
    decode,
    kind_at,
)

_LONGEST_WORD = 40  # bytes; a longer one before a full stop is no abbreviation
_PERIOD = ord(".")
_APOSTROPHE = ord("'")
_RIGHT_APOSTROPHE = 0x2019
_PUNCTUATION_LEAD = 0xE2  # the first byte of U+2019 and of other punctuation
_LONGEST_ORDINAL = 3  # digits; longer numbers are years
# Letters of the numbers of chapters and centuries, of kings, and of items of lists.
_ROMAN = tuple(map(ord, "IVXLCDM"))
_SMALL_ROMAN = tuple(map(ord, "IVX"))
_ITEM_ROMAN = tuple(map(ord, "ivx"))

_LISTS = toml_beside(__file__, "abbreviations.toml")
WORDS_OF_LANGUAGES = {name: words.split() for name, words in _LISTS["languages"].items()}


class WordLists(NamedTuple):
    """Sorted uint64 hashes of the words of `abbreviations.toml`."""

    never_last: np.ndarray
    may_be_last: np.ndarray
    before_number: np.ndarray
    before_ordinal: np.ndarray
    beginners: np.ndarray
    more_beginners: np.ndarray
    months: np.ndarray


@functools.cache
def word_lists() -> WordLists:
    """Read the word lists; loaded once per process."""
    return WordLists(
        never_last=_hashes(_LISTS["never_last"].split()),
        may_be_last=_hashes(_LISTS["may_be_last"].split()),
        before_number=_hashes(_LISTS["before_number"].split()),
        before_ordinal=_hashes(_LISTS["before_ordinal"].split()),
        beginners=_hashes(
            word.capitalize() for words in WORDS_OF_LANGUAGES.values() for word in words
        ),
        more_beginners=_hashes(map(str.capitalize, _LISTS["more_beginners"].split())),
        months=_hashes(map(str.capitalize, _LISTS["months"].split())),
    )


def _hashes(words: Iterable[str]) -> np.ndarray:
    """Return the sorted hashes of words as written, capitalized and in capitals."""
    forms: set[str] = set()
    for word in words:
        forms.update((word, word.capitalize(), word.upper()))
    texts = (np.frombuffer(form.encode(), np.uint8) for form in forms)
    return np.array(sorted(fnv1a(text, 0, len(text)) for text in texts), np.uint64)


@numba.njit(cache=True)
def _holds(hashes, value):
    """Return whether a value is among sorted hashes."""
    place = np.searchsorted(hashes, value)
    return place < len(hashes) and hashes[place] == value


@numba.njit(cache=True)
def _word_start(data, begin, mark, table):
    """Return the start of the word that ends before a mark, without quotes, brackets and dashes."""
    start = mark
    while start > begin and data[start - 1] != 32 and mark - start < _LONGEST_WORD:
        start -= 1
    while start < mark and data[start] & 0xC0 == 0x80:
        start += 1
    while start < mark:
        kind, width = kind_at(data, start, table)
        if kind != OPENER and kind != QUOTE and kind != DASH:
            break
        start += width
    return start


@numba.njit(cache=True)
def _ends_as_street(data, mark):
    """Whether a word ends in `str`, as German names of streets do."""
    return data[mark - 3] == ord("s") and data[mark - 2] == ord("t") and data[mark - 1] == ord("r")


@numba.njit(cache=True)
def _after_elision(data, start, mark):
    """Return the start of a word without an article before an apostrophe: `art` of `l'art`."""
    for place in range(start, mark - 2):
        if data[place] == _APOSTROPHE:
            start = place + 1
        is_mark = data[place] == _PUNCTUATION_LEAD and place < mark - 4
        if is_mark and decode(data, place)[0] == _RIGHT_APOSTROPHE:
            start = place + 3
    return start


@numba.njit(cache=True)
def _shape(data, start, stop, table):
    """Whether a word is all digits, and whether it is a letter or letters with stops between."""
    all_digits = True
    is_acronym = True
    letters = 0
    while start < stop:
        kind, width = kind_at(data, start, table)
        all_digits &= kind == DIGIT
        if kind in (UPPER, LOWER):
            letters += 1
            is_acronym &= letters == 1
        elif data[start] == _PERIOD and letters:
            letters = 0
        else:
            is_acronym = False
        start += width
    return all_digits, is_acronym


@numba.njit(cache=True)
def _is_roman(data, start, stop, letters):
    """Whether a word of several letters is a Roman number, which no further letter follows."""
    position = start
    while position < stop and data[position] in letters:
        position += 1
    is_inside = position < stop and (data[position] >= 0x80 or 64 < data[position] < 123)
    return position - start > 1 and not is_inside


@numba.njit(cache=True)
def _is_pronoun(data, start):
    """Whether a letter is `I` or the Russian `Я`, which may be a whole answer."""
    return data[start] == ord("I") or (data[start] == 0xD0 and data[start + 1] == 0xAF)


@numba.njit(cache=True)
def period_ends(data, begin, mark, following, stop, follower, table, lists):
    """Whether a single full stop ends a sentence before something that is not lower case.

    Args:
        data: uint8, clean UTF-8.
        begin: byte where the sentence begins.
        mark: byte of the full stop.
        following: byte where the next word or number begins.
        stop: byte after the paragraph.
        follower: class of the character at `following`.
        table: classes of code points, see `sentence_table`.
        lists: `word_lists`.
    """
    start = _word_start(data, begin, mark, table)
    before = fnv1a(data, _after_elision(data, start, mark), mark)
    if _holds(lists.never_last, before):
        return False
    is_street = mark - start > 3 and _ends_as_street(data, mark)
    has_number = follower == DIGIT or _is_roman(data, following, stop, _ROMAN)
    if has_number and (is_street or _holds(lists.before_number, before)):
        return False
    numerals = _ITEM_ROMAN if data[start] >= ord("a") else _SMALL_ROMAN
    if start == begin and _is_roman(data, start, mark + 1, numerals):
        return False  # of a king, or a list
    after_stop = following
    letters = 0
    while after_stop < stop:
        kind, width = kind_at(data, after_stop, table)
        if kind != UPPER and kind != LOWER:
            break
        letters += 1
        after_stop += width
    after = fnv1a(data, following, after_stop)
    all_digits, is_acronym = _shape(data, start, mark, table)
    is_letter = is_acronym and mark - start == kind_at(data, start, table)[1]
    if start == begin and is_letter and not _is_pronoun(data, start):
        return False  # a letter of a list, or of a question and its answer: `A. We went home.`
    if all_digits:  # a list's number, a day before its month, or an ordinal
        if start == begin or _holds(lists.months, after):
            return False
        is_ordinal = mark - start <= _LONGEST_ORDINAL and follower == UPPER
        word = _word_start(data, begin, start - 1, table)
        return not (is_ordinal and _holds(lists.before_ordinal, fnv1a(data, word, start - 1)))
    if is_acronym or _holds(lists.may_be_last, before):
        is_initial = letters == 1 and after_stop < stop and data[after_stop] == _PERIOD
        begins = _holds(lists.beginners, after)
        # Of other languages some are names in English, which follow initials.
        is_initial_before = is_acronym and kind_at(data, start, table)[0] == UPPER
        begins |= not is_initial_before and _holds(lists.more_beginners, after)
        return follower == OTHER or (begins and not is_initial)
    return True

"""Split paragraphs into sentences by rules, in any script that marks their ends, or by a library.

The rules are those that golden-rule test sets describe (Pragmatic Segmenter), in one pass over the
bytes, since corpora have lines of megabytes. Text without marks (Thai, Lao, Tibetan) stays whole.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import check_splitter_installed
from pipeline.corpus.abbreviations import period_ends, word_lists
from pipeline.corpus.characters import (
    CLOSER,
    DASH,
    DIGIT,
    GREEK_QUESTION,
    LOWER,
    OPENER,
    OTHER,
    PUNCTUATION,
    QUOTE,
    SPACE,
    TERMINATOR,
    UPPER,
    WIDE_TERMINATOR,
    decode,
    kind_at,
    sentence_table,
)

_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*", re.IGNORECASE)
# sentencex always ends sentences here: two paragraphs are never one sentence.
_BETWEEN_PARAGRAPHS = "\n\n"
_BATCH_PARAGRAPHS = 1000
_GUILLEMET = 0xBB
# Questions and exclamations may be quoted within a sentence: `"Where?" he asked.`
_ASKING = tuple(
    map(ord, "!?\u061f\u203c\u2047\u2048\u2049\u1367\ufe15\ufe16\ufe56\ufe57\uff01\uff1f")
)
# These quotes open in most languages, but close in German.
_OPENING = (0x201C, 0x2018)
# Japanese particles after a quotation: "… to itta", "… tte", "… nado".
_QUOTATIVE = tuple(map(ord, "\u3068\u3063\u306a"))
_PERIOD = ord(".")
_LEFT_BRACKET = ord("[")
_RIGHT_BRACKET = ord("]")
_LEFT_PARENTHESIS = ord("(")
_FIRST_WITHOUT_CASE = 0x0590  # Hebrew; scripts before it have capitals
_QUOTE = ord('"')
_APOSTROPHE = ord("'")


# Finds the sentences of paragraphs `data[starts[p] : stops[p]]` of clean UTF-8: their starts and
# stops in `data`, int64 [sentences] each, without white space at their ends; and how many each
# paragraph has, int64 [paragraphs]. It is sent to the workers.
SentenceSplitter = Callable[
    [np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]
]


def split_sentences(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split by the rules; a `SentenceSplitter`."""
    return _split(data, starts, stops, sentence_table(), word_lists())


class _Marks(NamedTuple):
    """Marks in a row that may end a sentence, such as `?!` and `...`."""

    end: int  # the byte after them
    is_wide: bool  # whether one needs no space after it, as in Chinese
    is_strong: bool  # whether one is neither a full stop nor an ellipsis
    is_ellipsis: bool


@numba.njit(cache=True, nogil=True)
def _split(data, starts, stops, table, lists):
    """Find sentences, as `SentenceSplitter` describes them, in one pass.

    Args:
        data: uint8, clean UTF-8.
        starts: int64 [paragraphs], byte where each begins.
        stops: int64 [paragraphs], byte after each.
        table: classes of code points, see `sentence_table`.
        lists: `word_lists`.
    """
    counts = np.zeros(len(starts), np.int64)
    # A sentence that another follows has two bytes at least.
    sentence_starts = np.empty(len(starts) + len(data) // 2, np.int64)
    sentence_stops = np.empty_like(sentence_starts)
    sentences = 0
    for paragraph in range(len(starts)):
        begin, stop = starts[paragraph], stops[paragraph]
        position = begin
        while position < stop:
            kind, width = kind_at(data, position, table)
            if kind not in (TERMINATOR, WIDE_TERMINATOR, GREEK_QUESTION):
                position += width
                continue
            position, ends = _pass_marks(
                data, begin, position, starts[paragraph], stop, table, lists
            )
            if ends:
                sentence_starts[sentences] = begin
                sentence_stops[sentences] = position
                sentences += 1
                counts[paragraph] += 1
                while position < stop and table[decode(data, position)[0]] == SPACE:
                    position += decode(data, position)[1]
                begin = position
        if begin < stop:
            sentence_starts[sentences] = begin
            sentence_stops[sentences] = stop
            sentences += 1
            counts[paragraph] += 1
    return sentence_starts[:sentences], sentence_stops[:sentences], counts


@numba.njit(cache=True)
def _pass_marks(data, begin, mark, paragraph_start, stop, table, lists):
    """Pass marks and the quotes and brackets that close after them, and decide.

    Args:
        data: uint8, clean UTF-8.
        begin: byte where the sentence begins.
        mark: byte of its first mark.
        paragraph_start: byte where the paragraph begins.
        stop: byte after the paragraph.
        table: classes of code points, see `sentence_table`.
        lists: `word_lists`.

    Returns:
        The byte to continue from, `stop` if nothing that could begin a sentence follows; and
        whether the sentence ends there.
    """
    code_point, width = decode(data, mark)
    is_greek = table[code_point] == GREEK_QUESTION
    if is_greek:
        marks = _Marks(mark + width, False, True, False)
        if not _is_greek_before(data, mark, begin):
            return marks.end, False
    else:
        marks = _end_of_marks(data, mark, stop, table)
    position = _end_of_closers(data, marks.end, stop, table)
    if position >= stop:
        return position, False
    if not marks.is_wide and kind_at(data, position, table)[0] != SPACE:
        return position, False
    following, follower = _next_beginning(data, position, stop, table)
    if follower == SPACE:  # nothing but closing marks follows
        return stop, False
    if follower in (PUNCTUATION, GREEK_QUESTION):
        return position, False

    before = data[mark - 1] if mark > begin else 32
    # "[...]", "(?)", and ".. note" of reStructuredText
    if before in (_LEFT_BRACKET, _LEFT_PARENTHESIS) or (mark == begin and marks.is_ellipsis):
        return position, False
    is_quoted = position > marks.end
    asks = is_greek or ((is_quoted or before == 32) and code_point in _ASKING)
    if is_quoted and _continues_speech(
        data, marks.end, position, stop, follower, asks, marks.is_wide, table
    ):
        return position, False
    if marks.is_wide:
        return position, True
    if before == 32 and not marks.is_ellipsis:
        # Marks are tokens of their own, or have a space before them as in French. Before lower case
        # they end a sentence only in text where sentences do not begin with capitals.
        if follower != LOWER:
            return position, True
        opens_quote = asks and _is_quote_token(data, position, stop)
        return position, not opens_quote and not _begins_upper(data, paragraph_start, stop, table)
    if follower == LOWER:
        return position, False
    if marks.is_strong or marks.is_ellipsis:
        return position, True
    return position, period_ends(data, begin, mark, following, stop, follower, table, lists)


@numba.njit(cache=True)
def _begins_upper(data, position, stop, table):
    """Whether a paragraph begins with a capital, from which follows that its sentences do."""
    return _next_beginning(data, position, stop, table)[1] == UPPER


@numba.njit(cache=True)
def _is_quote_token(data, position, stop):
    """Whether ` " ` follows, a quote as a token of its own."""
    return position + 2 < stop and data[position + 1] == _QUOTE and data[position + 2] == 32


@numba.njit(cache=True)
def _continues_speech(data, marks_end, position, stop, follower, asks, is_wide, table):
    """Whether a sentence continues after the quotes or brackets that close a quotation.

    Capitals show where a sentence begins. Without them, a sentence continues after a question or an
    exclamation (`"Where?" he asked`), unless another quotation follows, and in Japanese before a
    particle. `[1]` closes no quotation.

    Args:
        data: uint8, clean UTF-8.
        marks_end: byte after the marks, where the first quote or bracket is.
        position: byte after the quotes and brackets.
        stop: byte after the paragraph.
        follower: class of the character that follows, see `_next_beginning`.
        asks: whether the marks are a question or an exclamation.
        is_wide: whether the marks need no space after them.
        table: classes of code points, see `sentence_table`.
    """
    if follower in (UPPER, DIGIT) or data[marks_end] == _LEFT_BRACKET:
        return False
    if follower == LOWER:
        return asks
    while position < stop and kind_at(data, position, table)[0] == SPACE:
        position += decode(data, position)[1]
    code_point, _ = decode(data, position)
    if code_point < _FIRST_WITHOUT_CASE or 0x2000 <= code_point < 0x2C00:
        return False  # a quotation, a dash or another sign
    if table[code_point] in (OPENER, QUOTE):
        return False
    return asks or (is_wide and code_point in _QUOTATIVE)


@numba.njit(cache=True)
def _is_greek_before(data, position, begin):
    """Whether a Greek letter (U+0370 to U+03FF, U+1F00 to U+1FFF) ends before a position."""
    start = position - 1
    while start > begin and data[start] & 0xC0 == 0x80:
        start -= 1
    if start < begin:
        return False
    code_point, _ = decode(data, start)
    return 0x370 <= code_point < 0x400 or 0x1F00 <= code_point < 0x2000


@numba.njit(cache=True)
def _end_of_marks(data, position, stop, table):
    """Return the terminators that begin at a position, as `_Marks`."""
    is_wide = is_strong = is_ellipsis = False
    marks = 0
    while position < stop:
        code_point, width = decode(data, position)
        kind = table[code_point]
        if kind in (TERMINATOR, WIDE_TERMINATOR):
            is_wide |= kind == WIDE_TERMINATOR
            is_ellipsis |= code_point == 0x2026
            is_strong |= code_point != _PERIOD and code_point != 0x2026
            marks += 1
            position += width
        elif kind == SPACE:
            ahead = position + width
            ahead_kind = kind
            while ahead < stop:
                ahead_kind, ahead_width = kind_at(data, ahead, table)
                if ahead_kind != TERMINATOR:
                    break
                ahead += ahead_width
            continues = ahead > position + width and (
                ahead >= stop or ahead_kind in (SPACE, CLOSER, QUOTE)
            )
            if not continues:
                break
            position += width
        else:
            break
    return _Marks(position, is_wide, is_strong, is_ellipsis or (marks > 1 and not is_strong))


@numba.njit(cache=True)
def _end_of_closers(data, position, stop, table):
    """Return the end of quotes, brackets and references such as `[1]` that close a sentence."""
    while position < stop:
        code_point, width = decode(data, position)
        kind = table[code_point]
        if kind == QUOTE and code_point in _OPENING and _begins_quote(data, position, stop, table):
            break
        if kind in (CLOSER, QUOTE):
            position += width
        elif data[position] == _LEFT_BRACKET:
            ahead = position + 1
            while ahead < stop and 48 <= data[ahead] <= 57:
                ahead += 1
            if ahead == position + 1 or ahead >= stop or data[ahead] != _RIGHT_BRACKET:
                break
            position = ahead + 1
        elif data[position] == 32 and position + 1 < stop:
            # French sets a space before its quotes; tokenizers write two apostrophes.
            code_point, width = decode(data, position + 1)
            after = position + 1 + width
            if code_point == _APOSTROPHE and after < stop and data[after] == _APOSTROPHE:
                after += 1
            elif code_point != _GUILLEMET:
                break
            if after < stop and data[after] != 32:
                break
            position = after
        else:
            break
    return position


@numba.njit(cache=True)
def _begins_quote(data, position, stop, table):
    """Whether a letter follows a quote that may open or close, which shows that it opens."""
    position += decode(data, position)[1]
    return position < stop and kind_at(data, position, table)[0] in (OTHER, UPPER, LOWER, DIGIT)


@numba.njit(cache=True)
def _next_beginning(data, position, stop, table):
    """Return the place after spaces, quotes, brackets and dashes, and its class (or SPACE)."""
    while position < stop:
        kind, width = kind_at(data, position, table)
        if kind < SPACE or kind > DASH or kind in (TERMINATOR, WIDE_TERMINATOR):
            return position, kind
        has_closer = kind == OPENER and stop - position > 3 and table[data[position + 2]] == CLOSER
        if has_closer and table[data[position + 1]] == LOWER:
            width = 3  # the item "(b)"
        position += width
    return stop, SPACE


def make_splitter(name: str, language: str) -> SentenceSplitter | None:
    """Create the splitter of `CorpusSection.sentence_splitter`; None for `none`.

    Raises:
        UsageError: the splitter's library is not installed, or the language is no language code.
    """
    if name == "none":
        return None
    if name == "rules":
        return split_sentences
    check_splitter_installed(name)
    if not _LANGUAGE_CODE.fullmatch(language):
        raise UsageError(
            f"sentence_language {language!r}: expected a language code such as en, de or zh"
        )
    return functools.partial(_split_by_sentencex, language.lower())


def _split_by_sentencex(
    language: str, data: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split by Wikimedia's library; unknown languages fall back on a related one or on English."""
    from sentencex import segment

    sentence_starts: list[int] = []
    sentence_stops: list[int] = []
    counts = np.zeros(len(starts), np.int64)
    for first in range(0, len(starts), _BATCH_PARAGRAPHS):
        begins = starts[first : first + _BATCH_PARAGRAPHS].tolist()
        ends = stops[first : first + _BATCH_PARAGRAPHS].tolist()
        text = _BETWEEN_PARAGRAPHS.join(
            data[begin:end].tobytes().decode("utf-8")
            for begin, end in zip(begins, ends, strict=True)
        )
        paragraph = 0
        position = begins[0]
        # The segments together are the text, except for some breaks between paragraphs. These are
        # segments, too, but one every 10,000 characters is missing (seen in 1.0.32).
        for part in segment(language, text):
            if part == _BETWEEN_PARAGRAPHS:
                continue
            if position == ends[paragraph]:
                paragraph += 1
                position = begins[paragraph]
            raw = part.encode("utf-8")
            sentence = part.strip().encode("utf-8")
            if sentence:
                start = position + raw.index(sentence)
                sentence_starts.append(start)
                sentence_stops.append(start + len(sentence))
                counts[first + paragraph] += 1
            position += len(raw)
        assert position == ends[-1], "sentencex changed the text"
    return np.array(sentence_starts, np.int64), np.array(sentence_stops, np.int64), counts

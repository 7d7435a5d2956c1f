"""Removes HTML tags, character references and boilerplate lines from web pages.

Boilerplate is found by the phrases of C4 (Raffel et al. 2020, section 2.2) and the patterns of
RefinedWeb (Penedo et al. 2023, appendix G.2), with copyright notices and rows of links. Unlike in
C4, a phrase counts only in short lines, and JavaScript only where it has to be turned on, so that
paragraphs about it stay. A character reference needs its semicolon, so that addresses such as
`?a=1&copy=2` stay.
"""

from __future__ import annotations

import html
import re
from html.entities import html5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bert_tf.base.files import toml_beside
from pipeline.corpus.lines import CleanLines, clean_lines
from pipeline.corpus.raw_block import Texts, gather

MARKUP_LINE = "only mark-up"
LISTS = toml_beside(__file__, "web_pages.toml")
# Arrow's expressions (RE2) take time in proportion to the text, even if marks are never closed.
_ATTRIBUTES = r"""(\s([^<>"'=]|=\s*"[^"<]*"|=\s*'[^'<]*'|["'=])*|/)?"""
_HIDDEN = (
    r"(?is)<!--.*?(-->|\z)|<script\b.*?(</script\s*>|\z)|<style\b.*?(</style\s*>|\z)"
    r"|<!doctype\b[^>]*>|<!\[cdata\[|\]\]>"
)


def _tag_pattern(elements: str) -> str:
    """Return the pattern of a start or end tag of the elements, which blanks separate."""
    names = "|".join(elements.split())
    return rf"(?is)</?({names}){_ATTRIBUTES}>"


_PARAGRAPH_TAG = _tag_pattern(LISTS["paragraph_elements"])
_INLINE_TAG = _tag_pattern(LISTS["inline_elements"])
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_LINE_ENDS = frozenset("\n\v\f\r\x85\u2028\u2029")
BOILERPLATE_LINE = "boilerplate line"
_LONGEST_NOTICE_BYTES = 200
# Patterns of boilerplate lines: RE2, in any case. A line has its trailing space here; `\W*`
# allows bullets and arrows around a phrase.
_NOTICES = "|".join(
    (
        r"\b(enable|activate|allow|turn(ed)? on|requires?|needs?|supports?|without)\b"
        r"[^.]{0,40}\bjavascript\b",
        r"\bjavascript\b[^.]{0,40}\b(enabled|disabled|required|supported|turned (on|off))\b",
        r"\b(terms of (use|service)|privacy policy|cookie policy)\b",
        r"\b(uses?|use of|using|accept( all)?) cookies\b",
        r"\ball rights reserved\b",
        r"^\W*(©|\(c\)|copyright\b)\W*((©|\(c\)|copyright|by)\W*)*[12][0-9]{3}\b",
    )
)
# These count only in lines of up to ten words.
_NAVIGATION = "|".join(
    (
        r"^\W*((sign|log)[ -]?(in|out|up)|register|subscribe|skip to (main )?(content|navigation)"
        r"|back to top|share (this|on)|follow us|click here|add to (cart|basket|favorites))\b"
        r"[^.!?]*$",
        r"\b((read|show|load|view|see) (more|all)|continue reading|next page|previous page)\W*$",
        r"\bitems in (your )?(cart|basket)\b",
        r"^\W*[0-9][0-9.,]*[km]?\W+(likes?|shares?|comments?|views?|replies|reply|followers?"
        r"|following|retweets?|votes?|points?|stars?)\W*$",
        # Three or more short entries between bars, dots or arrows, and no end of a sentence.
        r"^([^|»›·•.!?]{1,30}[|»›·•]){2,}[^|»›·•.!?]{1,30}$",
    )
)
_UP_TO_TEN_WORDS = r"^(\S+\s+){1,10}$"


def strip_markup(texts: Texts, *, paragraph_end: bytes) -> Texts:
    """Remove markup of texts that are UTF-8; others stay.

    Args:
        texts: pages, or lines of pages.
        paragraph_end: replaces tags that end a paragraph: a line feed, or a space in lines.
    """
    marks = np.flatnonzero((texts.data == ord("<")) | (texts.data == ord("&")))
    has_mark = np.searchsorted(marks, texts.stops) > np.searchsorted(marks, texts.starts)
    numbers = np.flatnonzero(has_mark)
    clean = clean_lines(texts.data, texts.starts[numbers], texts.stops[numbers])
    may_have = numbers[clean.fault_positions < 0]
    if not len(may_have):
        return texts
    stripped = _strip(
        gather(texts.data, texts.starts[may_have], texts.stops[may_have]), paragraph_end
    )
    # The new texts come after the old ones; starts and stops point to either.
    offsets = np.frombuffer(stripped.buffers()[1], np.int64)[: len(stripped) + 1]
    data = np.frombuffer(stripped.buffers()[2] or b"", np.uint8)
    starts = texts.starts.copy()
    stops = texts.stops.copy()
    starts[may_have] = offsets[:-1] + len(texts.data)
    stops[may_have] = offsets[1:] + len(texts.data)
    return Texts(
        data=np.concatenate([texts.data, data]), starts=starts, stops=stops, lines=texts.lines
    )


def _strip(texts: pa.Array, paragraph_end: bytes) -> pa.Array:
    texts = texts.cast(pa.large_string())
    for pattern, replacement in (
        (_HIDDEN, ""),
        (_PARAGRAPH_TAG, paragraph_end.decode("ascii")),
        (_INLINE_TAG, ""),
    ):
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    has_reference = pc.match_substring_regex(texts, _REFERENCE.pattern)
    if not pc.any(has_reference).as_py():
        return texts
    in_line = paragraph_end != b"\n"

    def resolve(match: re.Match[str]) -> str:
        name = match.group()
        characters = html.unescape(name) if name[1] == "#" else html5.get(name[1:], name)
        return " " if in_line and characters in _LINE_ENDS else characters

    resolved = [_REFERENCE.sub(resolve, text) for text in texts.filter(has_reference).to_pylist()]
    return pc.replace_with_mask(texts, has_reference, pa.array(resolved, pa.large_string()))


def find_boilerplate(lines: CleanLines) -> np.ndarray:
    """Return whether lines are boilerplate, bool [lines]; empty ones are not."""
    is_short = (lines.lengths > 0) & (lines.lengths <= _LONGEST_NOTICE_BYTES)
    is_boilerplate = np.zeros(len(is_short), np.bool_)
    numbers = np.flatnonzero(is_short)
    if not len(numbers):
        return is_boilerplate
    short = lines.select(numbers)
    texts = pa.LargeStringArray.from_buffers(
        len(numbers), pa.py_buffer(short.offsets), pa.py_buffer(short.data)
    )
    is_notice = pc.match_substring_regex(texts, _NOTICES, ignore_case=True)
    is_brief = pc.match_substring_regex(texts, _UP_TO_TEN_WORDS)
    is_navigation = pc.match_substring_regex(texts, _NAVIGATION, ignore_case=True)
    matches = pc.or_(is_notice, pc.and_(is_brief, is_navigation))
    is_boilerplate[numbers] = matches.to_numpy(zero_copy_only=False)
    return is_boilerplate

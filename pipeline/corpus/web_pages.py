"""Removes HTML tags, character references and boilerplate lines from web pages.

Boilerplate are the phrases of C4 (Raffel et al. 2020, section 2.2) and the patterns of RefinedWeb
(Penedo et al. 2023, appendix G.2), with copyright notices and rows of links. Unlike in C4, a phrase
counts in short lines only, and JavaScript only where it is asked for, so that paragraphs about it
stay. A reference needs its semicolon, so that addresses such as `?a=1&copy=2` stay.
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
# Arrow's expressions (RE2) take time in proportion to the text, whatever is left open in it.
_ATTRIBUTES = r"""(\s([^<>"'=]|=\s*"[^"<]*"|=\s*'[^'<]*'|["'=])*|/)?"""
_HIDDEN = (
    r"(?is)<!--.*?(-->|\z)|<script\b.*?(</script\s*>|\z)|<style\b.*?(</style\s*>|\z)"
    r"|<!doctype\b[^>]*>|<!\[cdata\[|\]\]>"
)
_PARAGRAPH_TAG, _INLINE_TAG = (
    rf"(?is)</?({'|'.join(LISTS[name].split())}){_ATTRIBUTES}>"
    for name in ("paragraph_elements", "inline_elements")
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_LINE_ENDS = frozenset("\n\v\f\r\x85\u2028\u2029")
BOILERPLATE_LINE = "boilerplate line"
_LONGEST_NOTICE_BYTES = 200
_NOTICES, _NAVIGATION = ("|".join(LISTS[name]) for name in ("notices", "navigation"))
_UP_TO_TEN_WORDS = r"^(\S+\s+){1,10}$"


def strip_markup(texts: Texts, *, paragraph_end: bytes) -> Texts:
    """Removes markup of UTF-8; paragraphs end in `paragraph_end`, in lines a space."""
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
    starts, stops = texts.starts.copy(), texts.stops.copy()
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
    """bool [lines]: whether each line is boilerplate; empty ones are not."""
    is_short = (lines.lengths > 0) & (lines.lengths <= _LONGEST_NOTICE_BYTES)
    found = np.zeros(len(is_short), np.bool_)
    numbers = np.flatnonzero(is_short)
    if not len(numbers):
        return found
    short = lines.select(numbers)
    texts = pa.LargeStringArray.from_buffers(
        len(numbers), pa.py_buffer(short.offsets), pa.py_buffer(short.data)
    )
    is_notice = pc.match_substring_regex(texts, _NOTICES, ignore_case=True)
    is_brief = pc.match_substring_regex(texts, _UP_TO_TEN_WORDS)
    is_navigation = pc.match_substring_regex(texts, _NAVIGATION, ignore_case=True)
    matches = pc.or_(is_notice, pc.and_(is_brief, is_navigation))
    found[numbers] = matches.to_numpy(zero_copy_only=False)
    return found

"""Finds lines of web pages that are not prose: notices, navigation, counters.

Two published sets of rules for lines: the phrases of C4 (Raffel et al. 2020, section 2.2:
JavaScript warnings and policy notices) and the patterns of RefinedWeb (Penedo et al. 2023, appendix
G.2: sign-in prompts, "read more", carts, counters; in lines of ten words at most), with copyright
notices and rows of links. Unlike C4, a phrase counts in short lines only, and JavaScript only where
it is asked for, so that a paragraph or a title about it stays. The phrases are English; what other
languages' pages repeat on each page goes with `CorpusSection.duplicate_lines`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.corpus.cleaning.lines import CleanLines

BOILERPLATE_LINE = "boilerplate line"
_LONGEST_NOTICE_BYTES = 200
# RE2 takes time in proportion to the text for any pattern. `\W*` allows bullets and arrows
# around a phrase. A line has its trailing space here.
_NOTICES = "|".join(
    (
        r"\b(enable|activate|allow|turn(ed)? on|requires?|needs?|supports?|without)\b[^.]{0,40}"
        r"\bjavascript\b",
        r"\bjavascript\b[^.]{0,40}\b(enabled|disabled|required|supported|turned (on|off))\b",
        r"\b(terms of (use|service)|privacy policy|cookie policy)\b",
        r"\b(uses?|use of|using|accept( all)?) cookies\b",
        r"\ball rights reserved\b",
        r"^\W*(©|\(c\)|copyright\b)\W*((©|\(c\)|copyright|by)\W*)*[12][0-9]{3}\b",
    )
)
_WORDS_UP_TO_TEN = r"(\S+\s+){1,10}$"
_NAVIGATION = "|".join(
    (
        r"^\W*((sign|log)[ -]?(in|out|up)|register|subscribe|skip to (main )?(content|navigation)"
        r"|back to top|share (this|on)|follow us|click here|add to (cart|basket|favorites))\b"
        r"[^.!?]*$",
        r"\b((read|show|load|view|see) (more|all)|continue reading|next page|previous page)\W*$",
        r"\bitems in (your )?(cart|basket)\b",
        r"^\W*[0-9][0-9.,]*[km]?\W+(likes?|shares?|comments?|views?|replies|reply|followers?"
        r"|following|retweets?|votes?|points?|stars?)\W*$",
        # Three or more short entries between bars, dots or arrows, and no sentence's end.
        r"^([^|»›·•.!?]{1,30}[|»›·•]){2,}[^|»›·•.!?]{1,30}$",
    )
)


def find_boilerplate(lines: CleanLines) -> np.ndarray:
    """bool [lines]: which lines are boilerplate; empty ones are not."""
    is_short = (lines.lengths > 0) & (lines.lengths <= _LONGEST_NOTICE_BYTES)
    found = np.zeros(len(is_short), np.bool_)
    numbers = np.flatnonzero(is_short)
    if not len(numbers):
        return found
    texts = _as_strings(lines.select(numbers))
    is_notice = pc.match_substring_regex(texts, _NOTICES, ignore_case=True)
    is_brief = pc.match_substring_regex(texts, f"^{_WORDS_UP_TO_TEN}")
    is_navigation = pc.match_substring_regex(texts, _NAVIGATION, ignore_case=True)
    matches = pc.or_(is_notice, pc.and_(is_brief, is_navigation))
    found[numbers] = matches.to_numpy(zero_copy_only=False)
    return found


def _as_strings(lines: CleanLines) -> pa.Array:
    return pa.LargeStringArray.from_buffers(
        len(lines.lengths), pa.py_buffer(lines.offsets), pa.py_buffer(lines.data)
    )

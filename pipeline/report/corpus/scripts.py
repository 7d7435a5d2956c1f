"""The scripts of letters, by their Unicode names.

Python has no table of the property Script, but names of letters begin with it: "LATIN SMALL LETTER
A", "CJK UNIFIED IDEOGRAPH-4E00".
"""

from __future__ import annotations

import collections
import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable

import numpy as np

from pipeline.corpus.characters import NUM_CODE_POINTS

OTHER = "other"
# The script is what comes before the kind of letter. Names that begin with the style of a letter
# ("MATHEMATICAL BOLD CAPITAL A", "SCRIPT SMALL G") or with its form ("MODIFIER LETTER ...") have
# none; Unicode counts these letters to no script.
_SCRIPT = re.compile(
    r"(?:FULLWIDTH |HALFWIDTH )?"
    r"(?!MATHEMATICAL|DOUBLE-STRUCK|BLACK-LETTER|SCRIPT|MODIFIER|SUPERSCRIPT|TURNED)(.+?)"
    r"(?: SUBJOINED| SUPERFIXED| CLUSTER-INITIAL)?"
    r" (?:(?:(?:UNIFIED|COMPATIBILITY) )?IDEOGRAPH|LETTER|CAPITAL|SMALL|SUBSCRIPT|SYLLABLE|"
    r"SYLLABICS|CHARACTER|LIGATURE|(?:INDEPENDENT )?VOWEL|"
    r"EPIGRAPHIC|MTAVRULI|MODIFIER)\b"
)
_OTHER_NAMES = {
    "BOPOMOFO FINAL": "Bopomofo",
    "CANADIAN": "Canadian syllabics",
    "CJK": "Han",
    "HENTAIGANA": "Hiragana",
    "KHITAN": "Khitan small script",
    "MEROITIC HIEROGLYPHIC": "Meroitic hieroglyphs",
}
_SAMPLED_LETTERS = 100  # of a text, by which its script is told


@functools.lru_cache(maxsize=1 << 14)
def script_of(character: str) -> str:
    """Return the script of a letter, such as `Latin` or `Han`; `other` for the rest."""
    if not character.isalpha():
        return OTHER
    match = _SCRIPT.match(unicodedata.name(character, ""))
    if match is None:
        return OTHER
    name = match[1]
    return _OTHER_NAMES.get(name, name.title())


def count_scripts(texts: Iterable[str]) -> dict[str, int]:
    """Count letters by script, most frequent first.

    Args:
        texts: few and long, such as blocks: each costs up to a count per code point.
    """
    # Each code point is looked up once, however often it occurs.
    counts = np.zeros(NUM_CODE_POINTS, np.int64)
    for text in texts:
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        of_text = np.bincount(points)
        counts[: len(of_text)] += of_text
    scripts: dict[str, int] = {}
    for code_point in np.flatnonzero(counts).tolist():
        script = script_of(chr(code_point))
        if script != OTHER:
            scripts[script] = scripts.get(script, 0) + int(counts[code_point])
    return dict(sorted(scripts.items(), key=lambda item: (-item[1], item[0])))


def main_script(text: str) -> str:
    """Return the script of most of the first 100 letters of a text; `other` without letters."""
    letters = itertools.islice(filter(str.isalpha, text), _SAMPLED_LETTERS)
    counts = collections.Counter(map(script_of, letters))
    counts.pop(OTHER, None)
    return max(counts, key=counts.__getitem__, default=OTHER)

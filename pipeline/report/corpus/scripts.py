"""The scripts that letters are written in, by the names that Unicode gives them.

Python has no table of the property Script; names of letters begin with their script ("CYRILLIC
SMALL LETTER A"), but for ideographs and forms for compatibility.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np

OTHER = "other"
_SCRIPT = re.compile(
    r"(?:FULLWIDTH |HALFWIDTH )?(?!MODIFIER|SUPERSCRIPT|TURNED)(.+?)"
    r" (?:(?:(?:UNIFIED|COMPATIBILITY) )?IDEOGRAPH|LETTER|CAPITAL|SMALL|SUBSCRIPT|SYLLABLE|"
    r"SYLLABICS|CHARACTER|LIGATURE|(?:INDEPENDENT )?VOWEL|"
    r"EPIGRAPHIC|MTAVRULI|MODIFIER)\b"
)
_OTHER_NAMES = {
    "BOPOMOFO FINAL": "Bopomofo",
    "CJK": "Han",
    "HENTAIGANA": "Hiragana",
    "KATAKANA-HIRAGANA": "Katakana",
}


def script_of(character: str) -> str:
    """The script of a letter, as `Latin`, `Han`; `other` of what is no letter or has none."""
    if not character.isalpha():
        return OTHER
    found = _SCRIPT.match(unicodedata.name(character, ""))
    if found is None:
        return OTHER
    name = found[1]
    return _OTHER_NAMES.get(name, name.title())


def count_scripts(counts: np.ndarray) -> dict[str, int]:
    """Letters by script, the most frequent first; without what is `other`.

    Args:
        counts: int64 [code points], how often each occurs.
    """
    scripts: dict[str, int] = {}
    for code_point in np.flatnonzero(counts).tolist():
        script = script_of(chr(code_point))
        if script != OTHER:
            scripts[script] = scripts.get(script, 0) + int(counts[code_point])
    return dict(sorted(scripts.items(), key=lambda each: (-each[1], each[0])))

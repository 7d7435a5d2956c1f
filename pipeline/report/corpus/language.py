"""The language of a text, where its script or its small words tell it."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from pipeline.corpus.sentences.abbreviations import WORDS_OF_LANGUAGES
from pipeline.report.corpus.scripts import count_scripts

_LANGUAGE_OF_SCRIPT = {
    "Thai": "Thai",
    "Lao": "Lao",
    "Khmer": "Khmer",
    "Myanmar": "Burmese",
    "Tibetan": "Tibetan",
    "Hangul": "Korean",
    "Hiragana": "Japanese",
    "Katakana": "Japanese",
    "Han": "Chinese",
    "Greek": "Greek",
    "Armenian": "Armenian",
    "Georgian": "Georgian",
    "Tamil": "Tamil",
    "Telugu": "Telugu",
    "Kannada": "Kannada",
    "Malayalam": "Malayalam",
    "Gujarati": "Gujarati",
    "Gurmukhi": "Punjabi",
    "Sinhala": "Sinhala",
}
_MOST_OF = 0.8
_KANA_FRACTION = 0.05
_LEAST_HITS = 0.15  # of words
_TIMES_THE_NEXT = 1.5
_FEWEST_WORDS, _FEWEST_DISTINCT = 20, 5
_OWN_LETTER = {"Russian": "ы"}  # which Bulgarian, Macedonian and Serbian lack
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """The language of a text, or the script if that is all that can be told; None without letters.

    Languages of Latin and Cyrillic script are told by frequent words: most are not known.
    """
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    scripts = count_scripts(np.bincount(points, minlength=0x110000))
    if not scripts:
        return None
    total = sum(scripts.values())
    kana = scripts.get("Hiragana", 0) + scripts.get("Katakana", 0)
    if kana >= _KANA_FRACTION * total and kana + scripts.get("Han", 0) >= _MOST_OF * total:
        return "Japanese"
    script, letters = next(iter(scripts.items()))
    if letters < _MOST_OF * total:
        return "several scripts"
    if script in _LANGUAGE_OF_SCRIPT:
        return _LANGUAGE_OF_SCRIPT[script]
    words = Counter(_WORD.findall(text.lower()))
    number = words.total()
    hits = sorted(
        (sum(words[word] for word in known) / max(number, 1), language)
        for language, known in WORDS_OF_LANGUAGES.items()
    )
    (share, language), (next_share, _) = hits[-1], hits[-2]
    is_clear = (
        number >= _FEWEST_WORDS
        and share >= max(_LEAST_HITS, _TIMES_THE_NEXT * next_share)
        and len(words.keys() & set(WORDS_OF_LANGUAGES[language])) >= _FEWEST_DISTINCT
        and _OWN_LETTER.get(language, "") in text
    )
    return language if is_clear else f"{script} script"

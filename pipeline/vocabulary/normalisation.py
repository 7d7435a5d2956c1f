"""What BERT's basic tokenisation makes of each code point, as tables for a kernel.

The rules are those of `tensorflow_text`'s BERT tokenizers, which this project tokenises with
(`BasicTokenizer` of google-research/bert in all but rare characters): with lower case, NFKC case
folding, then NFD without the combining marks; white space, control and format characters separate
words; punctuation and Chinese characters are words by themselves.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

from pipeline.corpus.characters import ASSIGNED, NUM_CODE_POINTS

# What becomes of a code point: part of a word, a border between words, a word by itself, or
# something else first.
WORD, BORDER, ALONE, MAPPED = 0, 1, 2, 3

_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
# Default_Ignorable_Code_Point of DerivedCoreProperties.txt: NFKC case folding removes them.
_IGNORABLE = (
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_IGNORED = {chr(c) for first, last in _IGNORABLE for c in range(first, last + 1)}


class WordTables(NamedTuple):
    """How a kernel turns UTF-8 into words.

    Attributes:
        actions: uint8 [NUM_CODE_POINTS], WORD, BORDER, ALONE or MAPPED.
        mapping_of: int32 [NUM_CODE_POINTS]; a MAPPED code point stands for
            `mapped[offsets[m] : offsets[m + 1]]` with m its entry here.
        offsets: int32 [mappings + 1].
        mapped: uint8, UTF-8 of all mappings; its code points are looked up in `actions` again and
            never MAPPED there.
        ascii_actions: uint8 [128], WORD, BORDER or ALONE.
        ascii_letters: uint8 [128], what each ASCII character becomes.
    """

    actions: np.ndarray
    mapping_of: np.ndarray
    offsets: np.ndarray
    mapped: np.ndarray
    ascii_actions: np.ndarray
    ascii_letters: np.ndarray


@functools.cache
def word_tables(lowercase: bool) -> WordTables:
    """The tables of the lower-casing, accent-stripping tokenizer or of the cased one."""
    actions = np.full(NUM_CODE_POINTS, WORD, np.uint8)
    for code_point in ASSIGNED:
        category = unicodedata.category(chr(code_point))
        if category in ("Cc", "Cf", "Zs", "Zl", "Zp"):
            actions[code_point] = BORDER
        elif category.startswith("P") or _is_ascii_symbol(code_point):
            actions[code_point] = ALONE
    for first, last in _CHINESE:
        actions[first : last + 1] = ALONE
    mapping_of = np.zeros(NUM_CODE_POINTS, np.int32)
    mappings: list[bytes] = []
    if lowercase:
        for character, folded in _foldings():
            actions[ord(character)] = MAPPED
            mapping_of[ord(character)] = len(mappings)
            mappings.append(folded.encode("utf-8"))
    offsets = np.zeros(len(mappings) + 1, np.int32)
    np.cumsum([len(mapping) for mapping in mappings], out=offsets[1:])
    ascii_letters = bytes(range(128)).lower() if lowercase else bytes(range(128))
    return WordTables(
        actions=actions,
        mapping_of=mapping_of,
        offsets=offsets,
        mapped=np.frombuffer(b"".join(mappings), np.uint8),
        ascii_actions=np.where(actions[:128] == MAPPED, WORD, actions[:128]).astype(np.uint8),
        ascii_letters=np.frombuffer(ascii_letters, np.uint8),
    )


def fold(character: str) -> str:
    """NFD of the NFKC case folding (Unicode 3.13, D147) of a character, without marks (Mn)."""
    folded, before = character, ""
    while folded != before:
        before = folded
        folded = unicodedata.normalize("NFD", folded).casefold()
        folded = unicodedata.normalize("NFKC", "".join(c for c in folded if c not in _IGNORED))
    decomposed = unicodedata.normalize("NFD", folded)
    return "".join(c for c in decomposed if unicodedata.category(c) != "Mn")


def _foldings() -> list[tuple[str, str]]:
    """All characters that folding changes, with what they become."""
    surrogates = range(0xD800, 0xE000)
    characters = {chr(c) for c in ASSIGNED if c not in surrogates}
    surely_unchanged = {
        c
        for c in characters
        if c == unicodedata.normalize("NFKD", c) == c.casefold() and unicodedata.category(c) != "Mn"
    }
    candidates = sorted((characters - surely_unchanged) | _IGNORED)
    return [(c, folded) for c in candidates if (folded := fold(c)) != c]


def _is_ascii_symbol(code_point: int) -> bool:
    return 0x20 < code_point < 0x7F and not chr(code_point).isalnum()

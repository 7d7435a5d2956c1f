"""BERT's basic tokenization of each code point, as tables for a kernel.

The rules are those of later tokenization: `bert_tf.data.text.normalizer`, then white space
separates words; punctuation and Chinese characters are words by themselves (`BasicTokenizer` of
google-research/bert `tokenization.py`).
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.normalizer import IDEOGRAPHS, changed_code_points
from pipeline.corpus.characters import ASSIGNED, NUM_CODE_POINTS

# What becomes of a code point: part of a word, a border between words, a word by itself,
# something else first, or nothing.
WORD, BORDER, ALONE, MAPPED, DROPPED = range(5)


class WordTables(NamedTuple):
    """How a kernel turns UTF-8 into words."""

    actions: np.ndarray  # uint8 [NUM_CODE_POINTS], WORD, BORDER, ALONE, MAPPED or DROPPED
    # int32 [NUM_CODE_POINTS]; a MAPPED code point becomes `mapped[offsets[m] : offsets[m + 1]]`
    # with m its entry here.
    mapping_of: np.ndarray
    offsets: np.ndarray  # int32 [mappings + 1]
    mapped: np.ndarray  # uint8, UTF-8 of all mappings, whose code points are never MAPPED again
    ascii_actions: np.ndarray  # uint8 [128], WORD, BORDER, ALONE or DROPPED
    ascii_letters: np.ndarray  # uint8 [128], what each ASCII character becomes


@functools.cache
def word_tables(lowercase: Lowercase) -> WordTables:
    """The tables of the lower-casing, accent-stripping tokenizer or of the cased one."""
    actions = np.full(NUM_CODE_POINTS, WORD, np.uint8)
    for code_point in ASSIGNED:
        if unicodedata.category(chr(code_point)).startswith("P") or _is_ascii_symbol(code_point):
            actions[code_point] = ALONE
    for first, last in IDEOGRAPHS:
        actions[first : last + 1] = ALONE
    actions[0] = DROPPED
    mapping_of = np.zeros(NUM_CODE_POINTS, np.int32)
    mappings: list[bytes] = []
    for code_point, result in changed_code_points(lowercase=lowercase):
        if result in ("", " "):
            actions[code_point] = BORDER if result else DROPPED
        else:
            actions[code_point] = MAPPED
            mapping_of[code_point] = len(mappings)
            mappings.append(result.encode("utf-8"))
    actions[ord(" ")] = BORDER
    lengths = np.array([len(mapping) for mapping in mappings], np.int64)
    ascii_letters = bytes(range(128)).lower() if lowercase else bytes(range(128))
    return WordTables(
        actions=actions,
        mapping_of=mapping_of,
        offsets=offsets_of(lengths).astype(np.int32),
        mapped=np.frombuffer(b"".join(mappings), np.uint8),
        ascii_actions=np.where(actions[:128] == MAPPED, WORD, actions[:128]).astype(np.uint8),
        ascii_letters=np.frombuffer(ascii_letters, np.uint8),
    )


def _is_ascii_symbol(code_point: int) -> bool:
    return 0x20 < code_point < 0x7F and not chr(code_point).isalnum()

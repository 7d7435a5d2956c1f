"""The text layer without TensorFlow: the ids and offsets of `WordPieceTokenizer`, in Python.

For engines whose graph takes token ids. A text becomes words by two passes in C, `str.translate`
and `str.split`, and a word is cut into pieces once: words repeat, and most are found in a table.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.normalizer import normalize_code_point
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS

MAX_BYTES_PER_WORD = 400  # as of `WordPieceTokenizer`
_MOST_WORDS = 1 << 20  # that are kept with their pieces
_ASCII_PUNCTUATION = frozenset(
    chr(code)
    for begin, end in ((33, 48), (58, 65), (91, 97), (123, 127))
    for code in range(begin, end)
)
# Code points that are words of their own, as in google-research/bert's `_is_chinese_char`.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# Punctuation of Unicode 15 and 16, which tensorflow_text knows and Python 3.11 and 3.12 do not.
_LATER_PUNCTUATION = frozenset(
    chr(code)
    for begin, end in (
        (0x1B4E, 0x1B4F),
        (0x1B7F, 0x1B7F),
        (0x10D6E, 0x10D6E),
        (0x113D4, 0x113D5),
        (0x113D7, 0x113D8),
        (0x11B00, 0x11B09),
        (0x11BE1, 0x11BE1),
        (0x11F43, 0x11F4F),
        (0x16D6D, 0x16D6F),
        (0x1E5FF, 0x1E5FF),
    )
    for code in range(begin, end + 1)
)


class Tokens(NamedTuple):
    """Tokens of texts.

    Attributes:
        ids: int32 [tokens of all texts].
        offsets: int64 [texts + 1]; text i has `ids[offsets[i]:offsets[i + 1]]`.
    """

    ids: np.ndarray
    offsets: np.ndarray


class HostTokenizer:
    """BERT's WordPiece tokenizer over Python texts.

    Args:
        vocab: entries in the order of their ids, with the five specials (see `vocab_file`).
        lowercase: lower-case and strip accents before looking tokens up.

    Attributes:
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the specials.
    """

    def __init__(self, vocab: Sequence[str], *, lowercase: bool):
        self._ids = {entry: number for number, entry in enumerate(vocab)}
        self._longest = max(map(len, vocab))
        self._characters = _Characters(lowercase=lowercase)
        self._pieces: dict[str, tuple[int, ...]] = {}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in SPECIAL_TOKENS
        )

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """The tokens of each text, without [CLS] and [SEP]."""
        ids: list[int] = []
        lengths = np.zeros(len(texts), np.int64)
        pieces = self._pieces
        for number, text in enumerate(texts):
            before = len(ids)
            for word in text.translate(self._characters).split(" "):
                if word:
                    ids += pieces.get(word) or self._remembered(word)
            lengths[number] = len(ids) - before
        return Tokens(np.array(ids, np.int32), offsets_of(lengths))

    def _remembered(self, word: str) -> tuple[int, ...]:
        if len(self._pieces) >= _MOST_WORDS:
            self._pieces.clear()
        found = self._pieces[word] = self._cut(word)
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        """Ids of the longest entries that a word begins with, one after the other, or [UNK]'s."""
        if len(word.encode()) > MAX_BYTES_PER_WORD:
            return (self.unk_id,)
        found: list[int] = []
        begin, prefix = 0, ""
        while begin < len(word):
            for end in range(min(len(word), begin + self._longest), begin, -1):
                number = self._ids.get(prefix + word[begin:end])
                if number is not None:
                    break
            else:
                return (self.unk_id,)
            found.append(number)
            begin, prefix = end, CONTINUATION
        return tuple(found)


class _Characters(dict[int, str]):
    """What a code point becomes, for `str.translate`: spaces are put around punctuation and
    ideographs. It is filled as characters occur."""

    def __init__(self, *, lowercase: bool):
        super().__init__()
        self._lowercase = lowercase

    def __missing__(self, code_point: int) -> str:
        character = chr(code_point)
        normalized = normalize_code_point(character, lowercase=self._lowercase)
        result = "".join(f" {part} " if is_word_alone(part) else part for part in normalized)
        self[code_point] = result
        return result


def is_word_alone(character: str) -> bool:
    """Whether a normalized character is split from what is around it."""
    if character in _ASCII_PUNCTUATION or character in _LATER_PUNCTUATION:
        return True
    if unicodedata.category(character).startswith("P"):
        return True
    code = ord(character)
    return any(first <= code <= last for first, last in _IDEOGRAPHS)

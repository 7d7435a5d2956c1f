"""`WordPieceTokenizer` without TensorFlow, for engines whose graph takes token ids."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.normalizer import is_ideograph, normalize_code_point
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedTexts:
    ids: np.ndarray  # int32 [tokens of all texts]
    offsets: np.ndarray  # int64 [texts + 1]; text i has the tokens `offsets[i]:offsets[i + 1]`
    first_characters: np.ndarray  # int64 [tokens], the character of its text a token begins at
    last_characters: np.ndarray  # int64 [tokens], the character after the token

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, int64 [texts]."""
        return np.diff(self.offsets)


class Tokens(NamedTuple):
    ids: np.ndarray  # int32 [tokens of all texts]
    offsets: np.ndarray  # int64 [texts + 1]; text i has `ids[offsets[i]:offsets[i + 1]]`


class Tokenizer(Protocol):
    cls_id: int  # id of [CLS]
    sep_id: int  # id of [SEP]
    mask_id: int  # id of [MASK]

    @property
    def vocab(self) -> Sequence[str]: ...

    def tokenize_texts(self, texts: Sequence[str]) -> Tokens: ...

    def tokenize_with_characters(self, texts: Sequence[str]) -> TokenizedTexts:
        """Tokenize with the code points of each token; dropped ones count to the one before."""


def characters_at_bytes(
    texts: Sequence[bytes], owners: np.ndarray, byte_offsets: np.ndarray
) -> np.ndarray:
    """Turn byte offsets into UTF-8 texts into character (code point) offsets, int64 [n].

    Offsets begin a character or end their text; `owners`, int [n], are their texts, ascending.
    """
    flat = np.frombuffer(b"".join(texts), np.uint8)
    characters_before = offsets_of((flat & 0xC0) != 0x80)
    bases = offsets_of(np.array([len(text) for text in texts], np.int64))[:-1]
    return characters_before[bases[owners] + byte_offsets] - characters_before[bases[owners]]


# HuggingFace makes [UNK] of words above 100 characters, which have at most this many bytes.
MAX_BYTES_PER_WORD = 400
_MOST_WORDS = 1 << 20  # that are kept with their tokens
_BOUNDARY = "\0"  # of words where no blank is; normalized text has none
_CODE_POINTS = 0x110000
_UNKNOWN_WIDTH = 255
_ASCII_PUNCTUATION = frozenset(
    chr(code)
    for begin, end in ((33, 48), (58, 65), (91, 97), (123, 127))
    for code in range(begin, end)
)
# Punctuation of Unicode 15 and 16, which tensorflow_text knows and Python 3.11 and 3.12 do not.
_LATER_PUNCTUATION = re.compile(
    "[\u1b4e\u1b4f\u1b7f\U00010d6e\U000113d4\U000113d5\U000113d7\U000113d8\U00011b00-\U00011b09"
    "\U00011be1\U00011f43-\U00011f4f\U00016d6d-\U00016d6f\U0001e5ff]"
)


class HostTokenizer:
    """BERT's WordPiece tokenizer over Python texts; arguments as of `WordPieceTokenizer`."""

    def __init__(self, vocab: Sequence[str], *, lowercase: Lowercase):
        self.vocab = vocab
        self._ids = {entry: number for number, entry in enumerate(vocab)}
        self._longest = max(map(len, vocab))
        self._characters = _Characters(lowercase=lowercase, boundary=" ")
        self._marked_characters = _Characters(lowercase=lowercase, boundary=_BOUNDARY)
        self._widths = np.full(_CODE_POINTS, _UNKNOWN_WIDTH, np.uint8)
        # Characters of a word that an entry covers; all of them where the word is unknown.
        self._entry_lengths = np.array(
            [len(entry) - len(CONTINUATION) * entry.startswith(CONTINUATION) for entry in vocab]
        )
        self._ids_of_word: dict[str, tuple[int, ...]] = {}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in SPECIAL_TOKENS
        )

    def tokenize_texts(self, texts: Sequence[str]) -> Tokens:
        ids: list[int] = []
        lengths = np.zeros(len(texts), np.int64)
        ids_of_word = self._ids_of_word
        for number, text in enumerate(texts):
            before = len(ids)
            for word in text.translate(self._characters).split(" "):
                if word:
                    ids += ids_of_word.get(word) or self._remembered(word)
            lengths[number] = len(ids) - before
        return Tokens(np.array(ids, np.int32), offsets_of(lengths))

    def tokenize_with_characters(self, texts: Sequence[str]) -> TokenizedTexts:
        text_starts = offsets_of(np.array([len(text) + 1 for text in texts], np.int64))
        joined = "\n".join(texts)  # what separates words, and so texts
        marked = joined.translate(self._marked_characters)
        words = [word for word in marked.replace(_BOUNDARY, " ").split(" ") if word]
        ids: list[int] = []
        counts = np.zeros(len(words), np.int64)
        ids_of_word = self._ids_of_word
        for number, word in enumerate(words):
            found = ids_of_word.get(word) or self._remembered(word)
            ids += found
            counts[number] = len(found)

        # Where words are in the normalized text without boundaries.
        codes = _code_points(marked)
        is_character = codes != ord(_BOUNDARY)
        is_inside = np.pad(is_character & (codes != ord(" ")), 1)
        begins = np.flatnonzero(is_inside[1:] & ~is_inside[:-1])
        lengths = np.flatnonzero(is_inside[:-1] & ~is_inside[1:]) - begins
        begins = offsets_of(is_character)[begins]

        found_ids = np.array(ids, np.int32)
        word_of_token = np.repeat(np.arange(len(words)), counts)
        covered = np.where(
            found_ids == self.unk_id, lengths[word_of_token], self._entry_lengths[found_ids]
        )
        ends = np.cumsum(covered) - offsets_of(lengths)[word_of_token] + begins[word_of_token]
        sources = self._sources(_code_points(joined))
        first, last = sources[ends - covered], sources[ends]
        owners = np.searchsorted(text_starts, first, side="right") - 1
        return TokenizedTexts(
            ids=found_ids,
            offsets=np.searchsorted(owners, np.arange(len(texts) + 1)),
            first_characters=first - text_starts[owners],
            last_characters=last - text_starts[owners],
        )

    def _sources(self, codes: np.ndarray) -> np.ndarray:
        """The original character of each normalized one, and the end: int64 [n + 1]."""
        unknown = np.unique(codes[self._widths[codes] == _UNKNOWN_WIDTH])
        for code in unknown.tolist():
            self._widths[code] = len(self._marked_characters[code].replace(_BOUNDARY, ""))
        sources = np.repeat(np.arange(len(codes)), self._widths[codes])
        return np.append(sources, len(codes))

    def _remembered(self, word: str) -> tuple[int, ...]:
        if len(self._ids_of_word) >= _MOST_WORDS:
            self._ids_of_word.clear()
        pieces: list[int] = []
        if len(word.encode()) <= MAX_BYTES_PER_WORD:
            pieces = longest_match(word, self._ids, longest=self._longest)
        found = self._ids_of_word[word] = tuple(pieces) or (self.unk_id,)
        return found


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def longest_match(word: str, ids: Mapping[str, int], *, longest: int) -> list[int]:
    """Find ids of the longest entries that a word or `##` continuation is made of, or []."""
    prefix = CONTINUATION if word.startswith(CONTINUATION) else ""
    begin, found = len(prefix), []
    while begin < len(word):
        for end in range(min(len(word), begin + longest), begin, -1):
            number = ids.get(prefix + word[begin:end])
            if number is not None:
                break
        else:
            return []
        found.append(number)
        begin, prefix = end, CONTINUATION
    return found


class _Characters(dict[int, str]):
    """Table of `str.translate`: normalized code points, boundaries around one-character words."""

    def __init__(self, *, lowercase: Lowercase, boundary: str):
        super().__init__()
        self._lowercase = lowercase
        self._boundary = boundary

    def __missing__(self, code_point: int) -> str:
        character = chr(code_point)
        normalized = normalize_code_point(character, lowercase=self._lowercase)
        around = self._boundary
        result = "".join(
            f"{around}{part}{around}" if is_word_alone(part) else part for part in normalized
        )
        self[code_point] = result
        return result


def is_word_alone(character: str) -> bool:
    if character in _ASCII_PUNCTUATION or _LATER_PUNCTUATION.fullmatch(character):
        return True
    return unicodedata.category(character).startswith("P") or is_ideograph(character)

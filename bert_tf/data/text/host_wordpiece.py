"""WordPiece tokenization without TensorFlow, for engines whose graph takes token ids.

Gives the same tokens as `WordPieceTokenizer`. Texts are normalized by `str.translate` with a table
that is filled as characters occur. The table also puts spaces around characters that are words of
their own, so that splitting at spaces gives the words. The ids of words are remembered, since most
words of a text are frequent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.normalizer import normalize_code_point
from bert_tf.data.text.punctuation import is_word_alone
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedTexts:
    """Tokens of texts, with the characters that each token covers.

    Attributes:
        ids: int32 [tokens of all texts].
        offsets: int64 [texts + 1]; text i has the tokens `offsets[i]:offsets[i + 1]`.
        first_characters: int64 [tokens], first character of the token in its text (a code point).
        last_characters: int64 [tokens], the character after the token.
    """

    ids: np.ndarray
    offsets: np.ndarray
    first_characters: np.ndarray
    last_characters: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, int64 [texts]."""
        return np.diff(self.offsets)


class Tokens(NamedTuple):
    """Tokens of texts.

    Attributes:
        ids: int32 [tokens of all texts].
        offsets: int64 [texts + 1]; text i has `ids[offsets[i]:offsets[i + 1]]`.
    """

    ids: np.ndarray
    offsets: np.ndarray


class Tokenizer(Protocol):
    """A tokenizer of texts, with or without TensorFlow.

    Attributes:
        cls_id, sep_id, mask_id: ids of [CLS], [SEP] and [MASK].
    """

    cls_id: int
    sep_id: int
    mask_id: int

    @property
    def vocab(self) -> Sequence[str]:
        """Entries in the order of their ids."""
        ...

    def tokenize_texts(self, texts: Sequence[str]) -> Tokens:
        """Return the tokens of texts, without special tokens."""
        ...

    def tokenize_with_characters(self, texts: Sequence[str]) -> TokenizedTexts:
        """Return the tokens of texts, and the characters of each.

        Characters that normalization drops belong to the token before them.
        """


def characters_at_bytes(
    texts: Sequence[bytes], owners: np.ndarray, byte_offsets: np.ndarray
) -> np.ndarray:
    """Convert byte offsets in UTF-8 texts to character (code point) offsets.

    Args:
        texts: texts in UTF-8.
        owners: int [n], ascending, the text of each offset.
        byte_offsets: int [n], at the beginning of a character or the end of its text.

    Returns:
        int64 [n].
    """
    flat = np.frombuffer(b"".join(texts), np.uint8)
    characters_before = offsets_of((flat & 0xC0) != 0x80)
    bases = offsets_of(np.array([len(text) for text in texts], np.int64))[:-1]
    return characters_before[bases[owners] + byte_offsets] - characters_before[bases[owners]]


# Longer words become [UNK]. HuggingFace's limit is 100 characters, which have at most this many
# bytes.
MAX_BYTES_PER_WORD = 400
_MOST_WORDS = 1 << 20  # remembered with their ids; bounds the memory
# Marks the boundary of a word without a space, so that it is not counted as a character.
# Normalized text has no such character.
_BOUNDARY = "\0"
_CODE_POINTS = 0x110000
_UNKNOWN_WIDTH = 255  # more than any character becomes; marks widths that are not computed yet


class HostTokenizer:
    """BERT's WordPiece tokenizer for Python texts.

    Args:
        vocab: entries in the order of their ids, with the five special tokens.
        lowercase: whether text is lower-cased, and how, see `Lowercase`.

    Attributes:
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
    """

    def __init__(self, vocab: Sequence[str], *, lowercase: Lowercase):
        self.vocab = vocab
        self._ids = {entry: number for number, entry in enumerate(vocab)}
        self._longest = max(map(len, vocab))
        self._characters = _Characters(lowercase=lowercase, boundary=" ")
        self._marked_characters = _Characters(lowercase=lowercase, boundary=_BOUNDARY)
        self._widths = np.full(_CODE_POINTS, _UNKNOWN_WIDTH, np.uint8)
        # Characters of a word that an entry covers. [UNK] covers the whole word, see below.
        self._entry_lengths = np.array([len(entry.removeprefix(CONTINUATION)) for entry in vocab])
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
        joined = "\n".join(texts)  # a newline separates words, and so texts
        marked = joined.translate(self._marked_characters)
        words = [word for word in marked.replace(_BOUNDARY, " ").split(" ") if word]
        ids: list[int] = []
        counts = np.zeros(len(words), np.int64)
        ids_of_word = self._ids_of_word
        for number, word in enumerate(words):
            piece_ids = ids_of_word.get(word) or self._remembered(word)
            ids += piece_ids
            counts[number] = len(piece_ids)

        # Beginnings and lengths of the words in the normalized text without boundary marks.
        codes = _code_points(marked)
        is_character = codes != ord(_BOUNDARY)
        is_inside = np.pad(is_character & (codes != ord(" ")), 1)
        begins = np.flatnonzero(is_inside[1:] & ~is_inside[:-1])
        lengths = np.flatnonzero(is_inside[:-1] & ~is_inside[1:]) - begins
        begins = offsets_of(is_character)[begins]

        token_ids = np.array(ids, np.int32)
        word_of_token = np.repeat(np.arange(len(words)), counts)
        covered = np.where(
            token_ids == self.unk_id, lengths[word_of_token], self._entry_lengths[token_ids]
        )
        # Tokens of a word follow each other without a gap, so a running sum places their ends.
        ends = np.cumsum(covered) - offsets_of(lengths)[word_of_token] + begins[word_of_token]
        sources = self._sources(_code_points(joined))
        first = sources[ends - covered]
        last = sources[ends]
        owners = np.searchsorted(text_starts, first, side="right") - 1
        return TokenizedTexts(
            ids=token_ids,
            offsets=np.searchsorted(owners, np.arange(len(texts) + 1)),
            first_characters=first - text_starts[owners],
            last_characters=last - text_starts[owners],
        )

    def _sources(self, codes: np.ndarray) -> np.ndarray:
        """Return the original character of each normalized one, and the end: int64 [n + 1]."""
        unknown = np.unique(codes[self._widths[codes] == _UNKNOWN_WIDTH])
        for code in unknown.tolist():
            self._widths[code] = len(self._marked_characters[code].replace(_BOUNDARY, ""))
        sources = np.repeat(np.arange(len(codes)), self._widths[codes])
        return np.append(sources, len(codes))

    def _remembered(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word that is not remembered yet, and remember them."""
        if len(self._ids_of_word) >= _MOST_WORDS:
            self._ids_of_word.clear()
        pieces: list[int] = []
        if len(word.encode()) <= MAX_BYTES_PER_WORD:
            pieces = longest_match(word, self._ids, longest=self._longest)
        piece_ids = tuple(pieces) or (self.unk_id,)
        self._ids_of_word[word] = piece_ids
        return piece_ids


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def longest_match(word: str, ids: Mapping[str, int], *, longest: int) -> list[int]:
    """Split a word greedily: always take the longest entry that the rest begins with.

    This is the algorithm of WordPiece (Wu et al. 2016; google-research/bert `WordpieceTokenizer`).

    Args:
        word: a word, or with `##` the continuation of one.
        ids: id by entry.
        longest: characters of the longest entry, which bounds the search.

    Returns:
        Ids; [] if some part of the word has no entry.
    """
    prefix = CONTINUATION if word.startswith(CONTINUATION) else ""
    begin = len(prefix)
    pieces = []
    while begin < len(word):
        for end in range(min(len(word), begin + longest), begin, -1):
            number = ids.get(prefix + word[begin:end])
            if number is not None:
                break
        else:
            return []
        pieces.append(number)
        begin = end
        prefix = CONTINUATION
    return pieces


class _Characters(dict[int, str]):
    """Table of `str.translate`: normalized text by code point, filled as characters occur.

    Characters that are words of their own are surrounded by `boundary`.
    """

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

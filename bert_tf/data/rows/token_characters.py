"""Texts as tokens with the characters of the text that each token covers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.wordpiece import WordPieceTokenizer

_BATCH_TEXTS = 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedTexts:
    """Texts as tokens, with the characters each token covers.

    Attributes:
        ids: int32 [tokens of all texts].
        offsets: int64 [texts + 1]; text i has the tokens `offsets[i]:offsets[i + 1]`.
        first_characters: int64 [tokens], the character of its text a token begins at.
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


def tokenize_with_characters(tokenizer: WordPieceTokenizer, texts: Sequence[str]) -> TokenizedTexts:
    """Tokens of texts with the characters (code points, as Python counts) that each covers."""
    ids, lengths, first, last = [], [], [], []
    for begin in range(0, len(texts), _BATCH_TEXTS):
        encoded = [text.encode() for text in texts[begin : begin + _BATCH_TEXTS]]
        tokens, starts, ends = tokenizer.tokenize_with_offsets(tf.constant(encoded, tf.string))
        counts = tokens.row_lengths().numpy()
        owners = np.repeat(np.arange(len(encoded)), counts)
        ids.append(tokens.flat_values.numpy())
        lengths.append(counts)
        first.append(characters_at_bytes(encoded, owners, starts.flat_values.numpy()))
        last.append(characters_at_bytes(encoded, owners, ends.flat_values.numpy()))
    return TokenizedTexts(
        ids=_joined(ids, np.int32),
        offsets=offsets_of(_joined(lengths, np.int64)),
        first_characters=_joined(first, np.int64),
        last_characters=_joined(last, np.int64),
    )


def characters_at_bytes(
    texts: Sequence[bytes], owners: np.ndarray, byte_offsets: np.ndarray
) -> np.ndarray:
    """Turns byte offsets into UTF-8 texts into character (code point) offsets.

    Args:
        texts: the texts, UTF-8.
        owners: int [n], ascending; the text of each offset.
        byte_offsets: int [n], at the beginning of a character or at the end of its text.

    Returns:
        int64 [n].
    """
    flat = np.frombuffer(b"".join(texts), np.uint8)
    characters_before = offsets_of((flat & 0xC0) != 0x80)
    bases = offsets_of(np.array([len(text) for text in texts], np.int64))[:-1]
    return characters_before[bases[owners] + byte_offsets] - characters_before[bases[owners]]


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)

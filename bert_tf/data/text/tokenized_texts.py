"""Texts as tokens with the characters of the text that each token covers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bert_tf.base.arrays import offsets_of


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


class CharacterTokenizer(Protocol):
    """A tokenizer that says where its tokens are: `WordPieceTokenizer`, `HostTokenizer`.

    Attributes:
        vocab: entries by id.
        cls_id, sep_id: ids of [CLS] and [SEP].
    """

    cls_id: int
    sep_id: int

    @property
    def vocab(self) -> Sequence[str]: ...

    def tokenize_with_characters(self, texts: Sequence[str]) -> TokenizedTexts:
        """Tokens of texts with the characters (code points) that each covers.

        Characters that are dropped, such as a stripped accent, are counted to the token before
        them.
        """


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

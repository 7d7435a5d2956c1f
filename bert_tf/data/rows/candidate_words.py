"""Words to choose from at a mask, of one or several tokens, grouped by their number of tokens.

A mask stands for one entry of the vocabulary, so a longer word can only be weighed in a text with
as many masks as it has tokens. Words of the same number of tokens share such a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.text_files import has_surrogates, open_text
from bert_tf.data.text.host_wordpiece import Tokenizer

MOST_TOKENS = 16  # of a word: each mask needs a sequence for each number of tokens
MOST_WORDS = 10_000  # whose probabilities are computed for each mask
# Logits of a batch, 64 MB: those of 550 masks with 30,522 entries. Words of 16 tokens have as many
# for each mask, which the budget of tokens does not count.
MOST_LOGITS = 1 << 24


def most_rows(masks: int, entries: int) -> int:
    """Return the most rows of a batch whose logits fit into MOST_LOGITS; at least 1.

    Args:
        masks: number of masks of a row whose logits are computed.
        entries: entries of the vocabulary.
    """
    return max(1, MOST_LOGITS // (masks * entries))


class WordGroup(NamedTuple):
    """Words of the same number of tokens.

    Attributes:
        tokens: int32 [words, tokens of each].
        numbers: int32 [words], the number of each among all words, ascending.
    """

    tokens: np.ndarray
    numbers: np.ndarray

    @property
    def length(self) -> int:
        """Tokens of each word."""
        return self.tokens.shape[1]


def group_words(words: Sequence[str], tokenizer: Tokenizer) -> list[WordGroup]:
    """Group words by their number of tokens, the shortest first; every word must have a token."""
    tokens = tokenizer.tokenize_texts(words)
    lengths = np.diff(tokens.offsets)
    groups = []
    for length in np.unique(lengths).tolist():
        numbers = np.flatnonzero(lengths == length)
        places = tokens.offsets[:-1][numbers][:, None] + np.arange(length)
        groups.append(WordGroup(tokens.ids[places], numbers.astype(np.int32)))
    return groups


def read_words(
    path: str | Path, tokenizer: Tokenizer, *, unk_id: int, most_tokens: int = MOST_TOKENS
) -> tuple[str, ...]:
    """Read words, one per line; empty lines are skipped.

    Args:
        path: a text file.
        tokenizer: tokenizer of the model.
        unk_id: id of [UNK].
        most_tokens: most tokens of a word.

    Raises:
        UsageError: there are no words or too many; or a word, named with its line, is repeated,
            cannot be written with the vocabulary, or has too many tokens.
    """
    words: dict[str, int] = {}
    with open_text(path, newline="") as file:
        for number, line in enumerate(file, 1):
            word = line.strip()
            if not word:
                continue
            if word in words:
                raise UsageError(f"{path}:{number}: {word!r} is in line {words[word]} already")
            if has_surrogates(word):
                raise UsageError(f"{path}:{number}: is not UTF-8")
            words[word] = number
    if not 0 < len(words) <= MOST_WORDS:
        raise UsageError(
            f"{path}: has {len(words):,} words; give 1 to {MOST_WORDS:,}, one per line"
        )
    tokens = tokenizer.tokenize_texts(list(words))
    lengths = np.diff(tokens.offsets)
    unknown = np.add.reduceat(np.append(tokens.ids == unk_id, 0), tokens.offsets[:-1])
    for (word, number), length, unk in zip(words.items(), lengths, unknown, strict=True):
        if not length or unk:
            raise UsageError(
                f"{path}:{number}: {word!r} cannot be written with the vocabulary of the model"
            )
        if length > most_tokens:
            raise UsageError(
                f"{path}:{number}: {word!r} has {length} tokens; give words of up to {most_tokens}"
            )
    return tuple(words)

"""Texts as words and windows: model input, and where each word is read in it.

Words are BERT's own: what blanks and punctuation separate, see google-research/bert
`BasicTokenizer`; a word is a token with all that continue it (`##…`). A text that is too long for
a row is read in overlapping windows, and a word in the one where it has most context: the most
tokens on its shorter side (`_check_is_max_context` of google-research/bert `run_squad.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.windows import cut_windows
from bert_tf.data.text.host_wordpiece import CharacterTokenizer, TokenizedTexts

CONTINUES = "##"
SPECIALS = 2  # tokens of a row: [CLS] and [SEP]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextWords:
    """The words of texts, end to end.

    Attributes:
        offsets: int64 [texts + 1], where the words of a text begin and end.
        starts, ends: int64 [words], characters of the text, the end exclusive.
    """

    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """The text of each word, int64 [words]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordRows:
    """Texts ready for a model.

    Attributes:
        rows: one row per window.
        texts: int64 [windows], the text of each, ascending.
        words: of all texts.
        windows: int64 [words], the row that each word is read in.
        positions: int64 [words], where in that row its first token is.
    """

    rows: EncodedRows
    texts: np.ndarray
    words: TextWords
    windows: np.ndarray
    positions: np.ndarray


def encode_words(
    tokenizer: CharacterTokenizer, texts: Sequence[str], *, max_seq_length: int, stride: int
) -> WordRows:
    """Tokenizes texts and cuts them into windows.

    Args:
        tokenizer: the model's.
        texts: the texts.
        max_seq_length: tokens of a row.
        stride: tokens between the starts of two windows.
    """
    tokens = tokenizer.tokenize_with_characters(texts)
    capacity = max_seq_length - SPECIALS
    owner, start, length = cut_windows(
        tokens.lengths, np.full(len(texts), capacity, np.int64), stride=stride
    )
    first_tokens, words = _words(tokenizer, tokens)
    window_of_token = _windows_of_tokens(tokens.offsets[owner] + start, length)
    windows = window_of_token[first_tokens]
    return WordRows(
        rows=_rows(tokenizer, tokens, tokens.offsets[owner] + start, length),
        texts=owner,
        words=words,
        windows=windows,
        positions=1 + first_tokens - (tokens.offsets[owner] + start)[windows],
    )


def _words(tokenizer: CharacterTokenizer, tokens: TokenizedTexts) -> tuple[np.ndarray, TextWords]:
    """The first token of each word, int64 [words], and the words."""
    continues = np.array([entry.startswith(CONTINUES) for entry in tokenizer.vocab])
    begins = ~continues[tokens.ids]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins))[: len(first)] - 1
    words = TextWords(
        offsets=offsets_of(begins)[tokens.offsets],
        starts=tokens.first_characters[first],
        ends=tokens.last_characters[last],
    )
    return first, words


def _windows_of_tokens(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The window in which each token has most context, the first of equals.

    Args:
        starts: int64 [windows], first token of each, of all texts end to end.
        lengths: int64 [windows].
    """
    windows = np.repeat(np.arange(len(starts)), lengths)
    tokens = flat_ranges(starts, lengths)
    place = tokens - starts[windows]
    context = np.minimum(place, lengths[windows] - 1 - place)
    count = int((starts + lengths).max(initial=0))
    most = np.full(count, -1, np.int64)
    np.maximum.at(most, tokens, context)
    chosen = np.flatnonzero(context == most[tokens])[::-1]
    window_of_token = np.zeros(count, np.int64)
    window_of_token[tokens[chosen]] = windows[chosen]
    return window_of_token


def _rows(
    tokenizer: CharacterTokenizer, tokens: TokenizedTexts, starts: np.ndarray, lengths: np.ndarray
) -> EncodedRows:
    """`[CLS] window [SEP]` of every window."""
    offsets = offsets_of(lengths + SPECIALS)
    ids = np.full(offsets[-1], tokenizer.sep_id, np.int32)
    ids[offsets[:-1]] = tokenizer.cls_id
    ids[flat_ranges(offsets[:-1] + 1, lengths)] = tokens.ids[flat_ranges(starts, lengths)]
    return EncodedRows(ids=ids, offsets=offsets, second_starts=np.diff(offsets).astype(np.int32))

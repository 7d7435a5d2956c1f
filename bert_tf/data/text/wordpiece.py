"""WordPiece ids with byte offsets, eager and in graphs, and rows of texts in graphs.

Differences from HuggingFace's `BertTokenizerFast` are in docs/tokenization.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.base.libraries import import_tensorflow_text
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.host_wordpiece import (
    MAX_BYTES_PER_WORD,
    TokenizedTexts,
    Tokens,
    characters_at_bytes,
)
from bert_tf.data.text.normalizer import normalizer_model
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS, SPECIALS_OF_PAIR, SPECIALS_OF_TEXT

tf_text = import_tensorflow_text()

_BATCH_TEXTS = 1024  # texts that are tokenized at once, which bounds the memory


@dataclasses.dataclass(frozen=True)
class _Vocabulary:
    """Hides the entries from tf.Module, which would track a plain list and wrap it."""

    entries: list[str]


class WordPieceTokenizer(tf.Module):
    """BERT's WordPiece tokenizer, eager and inside graphs and SavedModels.

    Args:
        vocab: entries in the order of their ids, with the five special tokens.
        lowercase: whether text is lower-cased, and how, see `Lowercase`.

    Attributes:
        vocab_size: number of entries.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
    """

    def __init__(self, vocab: list[str], *, lowercase: Lowercase):
        super().__init__(name="word_piece_tokenizer")
        self._vocab = _Vocabulary(list(vocab))
        self.lowercase = lowercase
        self.vocab_size = len(vocab)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            vocab.index(token) for token in SPECIAL_TOKENS
        )
        normalizer = normalizer_model(lowercase=lowercase)
        self._tokenizer = tf_text.FastBertTokenizer(
            vocab=self._vocab.entries,
            token_out_type=tf.int32,
            unknown_token="[UNK]",
            max_bytes_per_word=MAX_BYTES_PER_WORD,
            fast_bert_normalizer_model_buffer=tf.constant(np.frombuffer(normalizer, np.uint8)),
        )

    @property
    def vocab(self) -> list[str]:
        """Entries in the order of their ids."""
        return self._vocab.entries

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Tokenize string [n] in UTF-8: ragged int32 [n, (tokens)]."""
        return self._tokenizer.tokenize(texts)

    def tokenize_with_offsets(
        self, texts: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Tokenize string [n] in UTF-8, with the bytes of each token.

        Returns:
            Ids int32, starts and ends int64, ragged [n, (tokens)]. Starts and ends are byte offsets
            in the original texts; ends are exclusive.
        """
        ids, starts, ends = self._tokenizer.tokenize_with_offsets(texts)
        return ids, tf.cast(starts, tf.int64), tf.cast(ends, tf.int64)

    def tokenize_texts(self, texts: Sequence[str]) -> Tokens:
        ids = []
        lengths = []
        for begin in range(0, len(texts), _BATCH_TEXTS):
            tokens = self.tokenize(tf.constant(texts[begin : begin + _BATCH_TEXTS], tf.string))
            ids.append(tokens.flat_values.numpy())
            lengths.append(tokens.row_lengths().numpy())
        return Tokens(_joined(ids, np.int32), offsets_of(_joined(lengths, np.int64)))

    def tokenize_with_characters(self, texts: Sequence[str]) -> TokenizedTexts:
        ids = []
        lengths = []
        first = []
        last = []
        for begin in range(0, len(texts), _BATCH_TEXTS):
            encoded = [text.encode() for text in texts[begin : begin + _BATCH_TEXTS]]
            tokens, starts, ends = self.tokenize_with_offsets(tf.constant(encoded, tf.string))
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


def pack_pairs(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None,
    *,
    max_seq_length: int,
    tokenizer: WordPieceTokenizer,
    is_second_optional: bool = False,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Join texts to rows `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, cut to `max_seq_length`.

    Pairs that are too long lose tokens of the longer text first, then of both, like with
    HuggingFace's `longest_first`: with room for 5 tokens, lengths (2, 9) become (2, 3), (9, 9)
    become (2, 3) and (10, 9) become (3, 2).

    Args:
        first: ids, ragged int32 [n, (tokens)].
        second: ids, ragged int32 [n, (tokens)]; None for single texts.
        max_seq_length: tokens of a row, special tokens included.
        tokenizer: has the ids of [CLS] and [SEP].
        is_second_optional: rows without tokens of the second text become `[CLS] a [SEP]`.

    Returns:
        input_word_ids and input_type_ids, ragged int32 [n, (at most max_seq_length)]. The type is 0
        up to the first [SEP] and 1 after it.
    """
    rows = first.nrows(out_type=tf.int32)
    cls = tf.fill([rows, 1], tf.constant(tokenizer.cls_id, tf.int32))
    sep = tf.fill([rows, 1], tf.constant(tokenizer.sep_id, tf.int32))
    if second is None:
        capacity = max_seq_length - SPECIALS_OF_TEXT
        kept = _row_heads(first, tf.minimum(_lengths(first), capacity))
        input_word_ids = tf.concat([cls, kept, sep], axis=1)
        return input_word_ids, tf.zeros_like(input_word_ids)
    first_lengths, second_lengths = longest_first_lengths(
        _lengths(first), _lengths(second), capacity=max_seq_length - SPECIALS_OF_PAIR
    )
    last = sep
    if is_second_optional:
        is_alone = _lengths(second) == 0
        alone_lengths = tf.minimum(_lengths(first), max_seq_length - SPECIALS_OF_TEXT)
        first_lengths = tf.where(is_alone, alone_lengths, first_lengths)
        last = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(sep[:, 0], ~is_alone), tf.cast(~is_alone, tf.int32)
        ).with_row_splits_dtype(first.row_splits.dtype)
    left = tf.concat([cls, _row_heads(first, first_lengths), sep], axis=1)
    right = tf.concat([_row_heads(second, second_lengths), last], axis=1)
    return (
        tf.concat([left, right], axis=1),
        tf.concat([tf.zeros_like(left), tf.ones_like(right)], axis=1),
    )


def longest_first_lengths(
    first: tf.Tensor, second: tf.Tensor, *, capacity: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Cut lengths like HuggingFace's `longest_first` (tokenizers, truncate_encodings).

    Args:
        first, second: int32 [n], lengths of both texts.
        capacity: most tokens of both together.

    Returns:
        int32 [n] and int32 [n], lengths to keep.
    """
    shorter = tf.minimum(first, second)
    longer = tf.maximum(first, second)
    half = capacity // 2
    both_cut = shorter > half
    cut_shorter = tf.where(both_cut, half, shorter)
    cut_longer = tf.where(both_cut, capacity - half, capacity - shorter)
    fits = first + second <= capacity
    shorter = tf.where(fits, shorter, cut_shorter)
    longer = tf.where(fits, longer, cut_longer)
    first_is_longer = first > second
    return tf.where(first_is_longer, longer, shorter), tf.where(first_is_longer, shorter, longer)


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _lengths(rows: tf.RaggedTensor) -> tf.Tensor:
    return tf.cast(rows.row_lengths(), tf.int32)


def _row_heads(rows: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Return the first `lengths[i]` tokens of every row, which has at least as many."""
    starts = rows.row_starts()
    return token_ranges(rows, starts, tf.cast(lengths, starts.dtype))


def token_ranges(tokens: tf.RaggedTensor, starts: tf.Tensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Cut a range out of all tokens for each row.

    Args:
        tokens: ragged ids, of which the flat values are used.
        starts: int [rows], place of the first token in the flat values.
        lengths: int [rows], number of tokens.

    Returns:
        Ragged [rows, (lengths)].
    """
    positions = tf.ragged.range(starts, starts + lengths)
    return tf.gather(tokens.flat_values, positions.with_row_splits_dtype(tokens.row_splits.dtype))

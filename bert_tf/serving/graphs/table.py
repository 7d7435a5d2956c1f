"""Predictions for a text, or a pair of texts, inside one graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from bert_tf.config.sections.finetuning import HEAD_TAIL, WINDOWS
from bert_tf.data.rows.host_rows import OVERLAP, head_length
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR, SPECIALS_OF_TEXT
from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs, token_ranges
from bert_tf.serving.signatures import LOST_TOKENS, ROW_TOKENS
from bert_tf.serving.text_module import TextModule


class Sequences(NamedTuple):
    """Sequences of texts.

    Attributes:
        word_ids, type_ids: ragged int32 [sequences, (at most max_seq_length)].
        owners: int32 [sequences], the text of each sequence, ascending; every text has one.
        lost_tokens: int32 [texts], tokens of each text that no sequence has.
    """

    word_ids: tf.RaggedTensor
    type_ids: tf.RaggedTensor
    owners: tf.Tensor
    lost_tokens: tf.Tensor


def pack_texts(
    tokens: tf.RaggedTensor, *, method: str, max_seq_length: int, tokenizer: WordPieceTokenizer
) -> Sequences:
    """Make one or several sequences of each text.

    - `head`: the first tokens.
    - `head-tail`: the first and the last tokens, in the proportion of 128 to 382 of Sun et al. 2019
      ("How to Fine-Tune BERT for Text Classification?").
    - `windows`: all tokens; each window overlaps the next by a quarter. The last one begins earlier
      if needed, so that it is as long as the others.

    Args:
        tokens: ids, ragged int32 [texts, (tokens)].
        method: `head`, `head-tail` or `windows`.
        max_seq_length: tokens of a sequence, special tokens included.
        tokenizer: has the ids of [CLS] and [SEP].
    """
    owners = tf.range(tokens.nrows(out_type=tf.int32))
    lengths = tf.cast(tokens.row_lengths(), tf.int32)
    capacity = max_seq_length - SPECIALS_OF_TEXT
    if method == HEAD_TAIL:
        tokens = _heads_and_tails(tokens, capacity)
    elif method == WINDOWS:
        tokens, owners = _windows(tokens, capacity)
    word_ids, type_ids = pack_pairs(
        tokens, None, max_seq_length=max_seq_length, tokenizer=tokenizer
    )
    if method == WINDOWS:
        lost_tokens = tf.zeros_like(lengths)
    else:
        lost_tokens = lengths + SPECIALS_OF_TEXT - tf.cast(word_ids.row_lengths(), tf.int32)
    return Sequences(word_ids, type_ids, owners, lost_tokens)


def _heads_and_tails(tokens: tf.RaggedTensor, capacity: int) -> tf.RaggedTensor:
    """Cut the middle out of texts with more than `capacity` tokens."""
    head = head_length(capacity)
    starts = tokens.row_starts()
    lengths = tokens.row_lengths()
    fits = lengths <= capacity
    heads = token_ranges(tokens, starts, tf.where(fits, lengths, head))
    tail = tf.where(fits, tf.zeros_like(lengths), capacity - head)
    return tf.concat([heads, token_ranges(tokens, starts + lengths - tail, tail)], axis=1)


def _windows(tokens: tf.RaggedTensor, capacity: int) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Return the tokens of each window, and its text, int32 [windows]."""
    step = capacity - capacity // OVERLAP
    starts = tokens.row_starts()
    lengths = tokens.row_lengths()
    beyond_first = tf.maximum(lengths - capacity, 0)
    counts = 1 + (beyond_first + step - 1) // step
    owners = tf.repeat(tf.range(tf.size(counts)), counts)
    number = tf.ragged.range(counts).flat_values  # of a window among those of its text
    first = tf.minimum(number * step, tf.gather(beyond_first, owners))
    starts = tf.gather(starts, owners) + first
    return token_ranges(tokens, starts, tf.gather(tf.minimum(lengths, capacity), owners)), owners


class TableModule(TextModule):
    """Computes a task's `served_predictions` and `served_constants` from a text, or a pair.

    An empty text is scored as one without tokens.

    Args:
        task: a `TableTask`; has the length of a sequence and turns logits into predictions.
        model: built Keras model with its weights, float32.
        tokenizer: its tokenizer.
    """

    def __init__(self, task: Any, model: Any, tokenizer: WordPieceTokenizer):
        super().__init__(model, tokenizer, task.max_seq_length)
        self._task = task

    def inputs(self) -> tuple[str, ...]:
        return self._task.inputs()

    def optional_inputs(self) -> tuple[str, ...]:
        return self.inputs()[1:] if self._task.is_pair_optional else ()

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        sequences = self._sequences(texts)
        (logits,) = self.over_rows(
            lambda batch, _: (self.head_outputs(batch)["logits"],),
            sequences[:2],
            batch_tokens,
            tf.TensorSpec([self._task.num_logits], tf.float32),
        )
        if self._task.long_texts == WINDOWS:
            logits = tf.math.segment_mean(logits, sequences.owners)
        counts = {LOST_TOKENS: sequences.lost_tokens}
        if self._task.long_texts != WINDOWS:
            counts[ROW_TOKENS] = tf.cast(sequences.word_ids.row_lengths(), tf.int32)
        return {
            **self._task.served_predictions(logits),
            **self._task.served_constants(),
            **counts,
        }

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self._task.outputs(self.model, batch, training=False, dropout_key=None)

    def _sequences(self, texts: dict[str, tf.Tensor]) -> Sequences:
        """Tokenize texts or pairs, and make sequences of them."""
        tokens, *pair = (self.tokenizer.tokenize(texts[name]) for name in self.inputs())
        if not pair:
            return pack_texts(
                tokens,
                method=self._task.long_texts,
                max_seq_length=self.max_seq_length,
                tokenizer=self.tokenizer,
            )
        word_ids, type_ids = self.packed(tokens, *pair)
        lengths = sum(tf.cast(text.row_lengths(), tf.int32) for text in (tokens, *pair))
        specials: tf.Tensor | int = SPECIALS_OF_PAIR
        if self.optional_inputs():
            has_second = pair[0].row_lengths() > 0
            specials = tf.where(has_second, SPECIALS_OF_PAIR, SPECIALS_OF_TEXT)
        return Sequences(
            word_ids,
            type_ids,
            owners=tf.range(tokens.nrows(out_type=tf.int32)),
            lost_tokens=lengths + specials - tf.cast(word_ids.row_lengths(), tf.int32),
        )

"""Predictions for a text, or a pair of texts, inside one graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.config.sections.finetuning import WINDOWS
from bert_tf.data.rows.text_rows import Sequences, pack_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.signatures import LOST_TOKENS, ROW_TOKENS
from bert_tf.serving.text_module import TextModule


class TableModule(TextModule):
    """From a text, or a pair, to a task's `served_predictions` and `served_constants`.

    An empty text is scored as one without tokens.

    Args:
        task: a `TableTask`; has the length of a sequence and turns logits into predictions.
        model: built Keras model with its weights, float32.
    """

    def __init__(self, task: Any, model: Any, tokenizer: WordPieceTokenizer):
        super().__init__(model, tokenizer)
        self._task = task

    def inputs(self) -> tuple[str, ...]:
        return self._task.inputs()

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        sequences = self._sequences(texts)

        def logits(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor]:
            return (self.head_outputs(batch)["logits"],)

        (found,) = map_row_batches(
            logits,
            sequences.word_ids,
            sequences.type_ids,
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(tf.TensorSpec([self._task.num_logits], tf.float32),),
        )
        if self._task.long_texts == WINDOWS:
            found = tf.math.segment_mean(found, sequences.owners)
        counts = {LOST_TOKENS: sequences.lost_tokens}
        if self._task.long_texts != WINDOWS:
            counts[ROW_TOKENS] = tf.cast(sequences.word_ids.row_lengths(), tf.int32)
        return {
            **self._task.served_predictions(found),
            **self._task.served_constants(),
            **counts,
        }

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self._task.outputs(self.model, batch, training=False, dropout_key=None)

    def _sequences(self, texts: dict[str, tf.Tensor]) -> Sequences:
        tokens, *pair = (self.tokenizer.tokenize(texts[name]) for name in self.inputs())
        if not pair:
            return pack_texts(
                tokens,
                method=self._task.long_texts,
                max_seq_length=self._task.max_seq_length,
                tokenizer=self.tokenizer,
            )
        word_ids, type_ids = pack_pairs(
            tokens,
            *pair,
            max_seq_length=self._task.max_seq_length,
            tokenizer=self.tokenizer,
        )
        lengths = sum(tf.cast(text.row_lengths(), tf.int32) for text in (tokens, *pair))
        return Sequences(
            word_ids,
            type_ids,
            owners=tf.range(tokens.nrows(out_type=tf.int32)),
            lost_tokens=lengths + 3 - tf.cast(word_ids.row_lengths(), tf.int32),
        )

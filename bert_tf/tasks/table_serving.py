"""Predictions for a text, or a pair of texts, inside one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.text_module import TextModule

if TYPE_CHECKING:
    from bert_tf.tasks.table_task import TableTask


class TableModule(TextModule):
    """From `text` (and `text_pair`) to a task's `served_predictions` and `served_constants`.

    An empty text is scored as one without tokens.

    Args:
        task: length of a sequence and predictions from logits.
        model: built Keras model with its weights, float32.
        tokenizer: the model's.
    """

    def __init__(self, task: TableTask, model: Any, tokenizer: WordPieceTokenizer):
        super().__init__(model, tokenizer)
        self._task = task

    def inputs(self) -> tuple[str, ...]:
        """`text`, and `text_pair` where the task has pairs."""
        return self._task.inputs()

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `TextModule.predict`."""
        word_ids, type_ids = pack_pairs(
            self.tokenizer.tokenize(texts["text"]),
            self.tokenizer.tokenize(texts["text_pair"]) if "text_pair" in texts else None,
            max_seq_length=self._task.max_seq_length,
            tokenizer=self.tokenizer,
        )
        specs = self._prediction_specs()

        def score(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = self._task.outputs(self.model, batch, training=False, dropout_key=None)
            predicted = self._task.served_predictions(outputs["logits"])
            return tuple(predicted[name] for name in specs)

        columns = map_row_batches(
            score,
            word_ids,
            type_ids,
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=tuple(specs.values()),
        )
        return {**dict(zip(specs, columns, strict=True)), **self._task.served_constants()}

    def _prediction_specs(self) -> dict[str, tf.TensorSpec]:
        """Shape without the row axis and dtype of each prediction."""
        logits = tf.TensorSpec([None, self._task.num_logits], tf.float32)
        traced = tf.function(self._task.served_predictions, autograph=False)
        predicted = traced.get_concrete_function(logits).structured_outputs
        return {
            name: tf.TensorSpec(values.shape[1:], values.dtype)
            for name, values in predicted.items()
        }

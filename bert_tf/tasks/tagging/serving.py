"""Tagging of texts of any length inside one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.tagging.entity_graph import EntityWriter
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.word_graph import graph_words

if TYPE_CHECKING:
    from bert_tf.tasks.tagging.task import TaggingTask


class TextTagger(TextModule):
    """`text` to its entities and tags, by the rules of `predictions`.

    Outputs, all [n]: `predicted_entities` and `predicted_tags`, strings of JSON lists, see
    `predictions.prediction_columns`; `mean_score`, float32. Not of the rows: `labels`, string
    [labels].

    Args:
        task: labels and lengths.
        model: built Keras model with its weights, float32.
        tokenizer: the model's.
    """

    input_names: ClassVar[tuple[str, ...]] = TAGGING.inputs

    def __init__(self, task: TaggingTask, model: Any, tokenizer: WordPieceTokenizer):
        super().__init__(model, tokenizer)
        self._task = task
        self._writer = EntityWriter(task.labels, task.scheme)

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `TextModule.predict`."""
        task = self._task
        words = graph_words(
            self.tokenizer,
            texts["text"],
            max_seq_length=task.max_seq_length,
            stride=task.window_stride,
        )

        def best_tags(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor, ...]:
            logits = self.head_outputs(batch)["logits"]
            probabilities = tf.nn.softmax(logits, axis=-1)
            # Batches are of several lengths; a row of `max_seq_length` can hold each.
            beyond = task.max_seq_length - tf.shape(logits)[1]
            return tuple(
                tf.pad(values, [[0, 0], [0, tf.maximum(beyond, 0)]])[:, : task.max_seq_length]
                for values in (
                    tf.argmax(logits, axis=-1, output_type=tf.int32),
                    tf.reduce_max(probabilities, axis=-1),
                )
            )

        tags, probabilities = map_row_batches(
            best_tags,
            words.word_ids,
            tf.zeros_like(words.word_ids),
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(
                tf.TensorSpec([task.max_seq_length], tf.int32),
                tf.TensorSpec([task.max_seq_length], tf.float32),
            ),
        )
        places = tf.stack([words.window, words.position], axis=1)
        outputs = self._writer.outputs(
            texts["text"], words, tf.gather_nd(tags, places), tf.gather_nd(probabilities, places)
        )
        return {**outputs, "labels": tf.constant(task.labels)}

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`logits`, float32 [n, length, labels]."""
        return self._task.outputs(self.model, batch, training=False, dropout_key=None)

"""Classification of texts, or of pairs of texts, inside one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.classification.options import CLASSIFICATION

if TYPE_CHECKING:
    from bert_tf.tasks.classification.task import ClassificationTask


class TextClassifier(TextModule):
    """From `text` (and `text_pair`) to a label.

    Outputs: `predicted_label` string [n]; `predicted_score` float32 [n], the label's probability;
    `probabilities` float32 [n, labels]; `labels` string [labels], in the order of the
    probabilities. An empty text is scored as one without pieces.

    Args:
        task: label names and lengths.
        model: built Keras model with its weights, float32.
        tokenizer: the model's.
    """

    input_names: ClassVar[tuple[str, ...]] = CLASSIFICATION.inputs

    def __init__(self, task: ClassificationTask, model: Any, tokenizer: WordPieceTokenizer):
        super().__init__(model, tokenizer)
        self._task = task

    def inputs(self) -> tuple[str, ...]:
        """`text`, and `text_pair` where the task has pairs."""
        return self.input_names[:1] if self._task.text_pair_column is None else self.input_names

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `TextModule.predict`."""
        word_ids, type_ids = pack_pairs(
            self.tokenizer.tokenize(texts["text"]),
            self.tokenizer.tokenize(texts["text_pair"]) if "text_pair" in texts else None,
            max_seq_length=self._task.max_seq_length,
            tokenizer=self.tokenizer,
        )

        def score(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor]:
            outputs = self._task.outputs(self.model, batch, training=False, dropout_key=None)
            return (tf.nn.softmax(outputs["logits"], axis=-1),)

        names = tf.constant(self._task.labels)
        (probabilities,) = map_row_batches(
            score,
            word_ids,
            type_ids,
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(tf.TensorSpec([len(self._task.labels)], tf.float32),),
        )
        return {
            "predicted_label": tf.gather(names, tf.argmax(probabilities, axis=-1)),
            "predicted_score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "labels": names,
        }

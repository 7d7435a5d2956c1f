"""What a classifier predicts outside any exported graph: Python text layer and Keras model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from bert_tf.data.rows.encoded_rows import encode_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.single_batch import single_batch

if TYPE_CHECKING:
    from bert_tf.tasks.classification.task import ClassificationTask


def reference_probabilities(
    task: ClassificationTask,
    model: Any,
    tokenizer: WordPieceTokenizer,
    texts: Sequence[str],
    text_pairs: Sequence[str] | None,
) -> np.ndarray:
    """Probability of each label, float32 [texts, labels].

    Args:
        task: label names and lengths.
        model: built Keras model with its weights, float32.
        tokenizer: the model's.
        texts, text_pairs: of each row; None where rows are single texts.
    """
    rows = encode_texts(tokenizer, texts, text_pairs, max_seq_length=task.max_seq_length)
    outputs = task.outputs(
        model, single_batch(rows, tokenizer.pad_id), training=False, dropout_key=None
    )
    return tf.nn.softmax(outputs["logits"]).numpy()

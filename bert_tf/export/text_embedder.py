"""Vectors of texts from a model that was pretrained only, in a graph and outside of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.data.rows.text_rows import encode_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs
from bert_tf.export.loading import TrainedModel
from bert_tf.layers.pooling import pool_tokens
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.single_batch import single_batch
from bert_tf.serving.text_module import TextModule


class TextEmbedder(TextModule):
    """Maps `text` to vectors.

    Outputs, float32 [n, hidden]: `pooled_output`, the pooler's (Devlin et al. 2019, section 3), and
    `mean_embedding`, the mean of the last layer over all tokens, [CLS] and [SEP] included (Reimers
    and Gurevych 2019, section 3).

    Args:
        encoder: built `BertEncoder` with a pooler and its weights, float32.
        tokenizer: the model's.
        max_seq_length: tokens kept of a text, [CLS] and [SEP] included.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(self, encoder: Any, tokenizer: WordPieceTokenizer, *, max_seq_length: int):
        super().__init__(encoder, tokenizer)
        self._max_seq_length = max_seq_length

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `TextModule.predict`."""
        word_ids, type_ids = pack_pairs(
            self.tokenizer.tokenize(texts["text"]),
            None,
            max_seq_length=self._max_seq_length,
            tokenizer=self.tokenizer,
        )

        def embed(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            outputs = self.head_outputs(batch)
            return outputs["pooled_output"], outputs["mean_embedding"]

        width = tf.TensorSpec([self.model.config.hidden_size], tf.float32)
        pooled, mean = map_row_batches(
            embed,
            word_ids,
            type_ids,
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(width, width),
        )
        return {"pooled_output": pooled, "mean_embedding": mean}

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The vectors of each row, and `sequence_output`, float32 [n, length, hidden]."""
        encoded = self.model(
            batch["input_word_ids"],
            input_type_ids=batch["input_type_ids"],
            attention_mask=batch["input_mask"],
            training=False,
        )
        sequence = encoded["sequence_output"]
        return {
            "sequence_output": sequence,
            "pooled_output": encoded["pooled_output"],
            "mean_embedding": pool_tokens(sequence, batch["input_mask"], "mean"),
        }


def reference_pooled(trained: TrainedModel, texts: Sequence[str]) -> np.ndarray:
    """The pooler's output computed outside any exported graph, float32 [texts, hidden]."""
    longest = trained.directory.config.max_position_embeddings
    rows = encode_texts(trained.tokenizer, texts, None, max_seq_length=longest)
    batch = single_batch(rows, trained.tokenizer.pad_id)
    encoded = trained.encoder(
        batch["input_word_ids"],
        input_type_ids=batch["input_type_ids"],
        attention_mask=batch["input_mask"],
        training=False,
    )
    return np.asarray(encoded["pooled_output"])

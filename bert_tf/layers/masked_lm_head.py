"""The head that predicts masked tokens, tied to the word embeddings."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.layers.projection import Projection


@keras.saving.register_keras_serializable(package="bert_tf")
class MaskedLMHead(keras.layers.Layer):
    """Dense layer, activation, LayerNorm, product with the word embeddings, one bias per token.

    Like get_masked_lm_output of google-research/bert's run_pretraining.py, for masked tokens only.
    """

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.transform = Projection(
            config.hidden_size,
            initializer_range=config.initializer_range,
            activation_name=config.hidden_act,
            dtype=self.dtype_policy,
            name="transform",
        )
        self.layer_norm = LayerNorm(
            epsilon=config.layer_norm_eps, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, input_shape: Any = None) -> None:
        hidden_shape = (None, None, self.config.hidden_size)
        self.transform.build(hidden_shape)
        self.layer_norm.build(hidden_shape)
        self.output_bias = self.add_weight(
            name="output_bias",
            shape=(self.config.vocab_size,),
            initializer="zeros",
            autocast=False,
        )

    def call(self, hidden: Any, word_embeddings: Any) -> Any:
        """Score the vocabulary.

        Args:
            hidden: float [batch, predictions, hidden], states of the masked tokens.
            word_embeddings: float [vocab, hidden], the table of the encoder.

        Returns:
            Logits, float32 [batch, predictions, vocab].
        """
        return self.logits(self.transform(hidden), word_embeddings)

    def logits(self, transformed: Any, word_embeddings: Any) -> Any:
        """Compute `call` from the transformed states, float [batch, predictions, hidden]."""
        batch, predictions, _ = ops.shape(transformed)
        masked = self.layer_norm(transformed)
        rows = ops.reshape(masked, (-1, self.config.hidden_size))
        table = ops.cast(word_embeddings, self.compute_dtype)
        products = _transposed_product(rows, table)
        logits = ops.cast(products, "float32") + ops.cast(self.output_bias, "float32")
        return ops.reshape(logits, (batch, predictions, self.config.vocab_size))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": self.config.fields()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MaskedLMHead:
        return cls(**{**config, "config": BertConfig(**config["config"])})


def _transposed_product(rows: Any, table: Any) -> Any:
    """Multiply [rows, width] by [entries, width] to [rows, entries], without a transposed copy."""
    if keras.config.backend() != "tensorflow":
        return ops.matmul(rows, ops.transpose(table))
    import tensorflow as tf

    return tf.matmul(rows, table, transpose_b=True)

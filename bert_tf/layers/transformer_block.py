"""One layer of the encoder: self-attention and a feed-forward network."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.layers.dropout import StatelessDropout
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.layers.projection import Projection
from bert_tf.layers.self_attention import SelfAttention, gather_positions

DROPOUT_STREAMS = 3  # of a block: attention probabilities, and both residual sums


@keras.saving.register_keras_serializable(package="bert_tf")
class TransformerBlock(keras.layers.Layer):
    """Self-attention and feed-forward network, with LayerNorm after each residual sum.

    That order is the one of the original BERT (Devlin et al. 2019, section 3, after Vaswani et al.
    2017).

    Args:
        config: sizes, activation and dropout rates.
        first_dropout_stream: first of `DROPOUT_STREAMS` streams that the block uses.
    """

    def __init__(self, config: BertConfig, *, first_dropout_stream: int, **kwargs: Any):
        # Keras would cast the float32 attention bias down to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.config = config
        self.first_dropout_stream = first_dropout_stream
        policy = self.dtype_policy
        self.attention = SelfAttention(
            num_heads=config.num_attention_heads,
            dropout_rate=config.attention_probs_dropout_prob,
            dropout_stream=first_dropout_stream,
            initializer_range=config.initializer_range,
            dtype=policy,
            name="attention",
        )
        self.attention_dropout = StatelessDropout(
            config.hidden_dropout_prob,
            stream=first_dropout_stream + 1,
            dtype=policy,
            name="attention_dropout",
        )
        self.attention_layer_norm = LayerNorm(
            epsilon=config.layer_norm_eps, dtype=policy, name="attention_layer_norm"
        )
        self.intermediate = Projection(
            config.intermediate_size,
            initializer_range=config.initializer_range,
            activation_name=config.hidden_act,
            dtype=policy,
            name="intermediate",
        )
        self.output_projection = Projection(
            config.hidden_size,
            initializer_range=config.initializer_range,
            dtype=policy,
            name="output_projection",
        )
        self.output_dropout = StatelessDropout(
            config.hidden_dropout_prob,
            stream=first_dropout_stream + 2,
            dtype=policy,
            name="output_dropout",
        )
        self.output_layer_norm = LayerNorm(
            epsilon=config.layer_norm_eps, dtype=policy, name="output_layer_norm"
        )

    def build(self, input_shape: Any = None) -> None:
        hidden_shape = (None, None, self.config.hidden_size)
        self.attention.build(hidden_shape)
        self.attention_layer_norm.build(hidden_shape)
        self.intermediate.build(hidden_shape)
        self.output_projection.build((None, None, self.config.intermediate_size))
        self.output_layer_norm.build(hidden_shape)

    def call(
        self,
        hidden: Any,
        attention_bias: Any | None = None,
        dropout_key: Any | None = None,
        positions: Any | None = None,
    ) -> Any:
        """Compute the block for [batch, length, hidden]; arguments are those of
        `SelfAttention.call`.

        Returns:
            float [batch, length or number of positions, hidden].
        """
        hidden = ops.cast(hidden, self.compute_dtype)
        attended = self.attention(
            hidden, attention_bias=attention_bias, dropout_key=dropout_key, positions=positions
        )
        if positions is not None:
            hidden = gather_positions(hidden, positions)
        return self.transformed(hidden, attended, dropout_key)

    def transformed(self, hidden: Any, attended: Any, dropout_key: Any | None) -> Any:
        """Compute the part of the block after attention.

        `hidden` [batch, length, hidden] are the tokens that attended, `attended` the attention's
        output in the same shape.
        """
        hidden = self.attention_layer_norm.of_sum(
            hidden, attended, self.attention_dropout, dropout_key
        )
        transformed = self.output_projection(self.intermediate(hidden))
        return self.output_layer_norm.of_sum(hidden, transformed, self.output_dropout, dropout_key)

    def compute_output_shape(self, input_shape: Any, *_: Any) -> Any:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "config": self.config.fields(),
            "first_dropout_stream": self.first_dropout_stream,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TransformerBlock:
        return cls(**{**config, "config": BertConfig(**config["config"])})

"""The sum of word, position and segment embeddings."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.layers.dropout import StatelessDropout
from bert_tf.layers.layer_norm import LayerNorm


@keras.saving.register_keras_serializable(package="bert_tf")
class BertEmbeddings(keras.layers.Layer):
    """Word, position and segment embeddings, LayerNorm, dropout (Devlin et al. 2019, figure 2).

    The tables stay in the variables' dtype, so that mixed precision does not convert the whole
    vocabulary for a few rows; the result is in the compute dtype.

    Args:
        config: sizes and dropout rate.
        dropout_stream: see `StatelessDropout`.
    """

    def __init__(self, config: BertConfig, *, dropout_stream: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.dropout_stream = dropout_stream
        self.layer_norm = LayerNorm(
            epsilon=config.layer_norm_eps, dtype=self.variable_dtype, name="layer_norm"
        )
        self.dropout = StatelessDropout(
            config.hidden_dropout_prob,
            stream=dropout_stream,
            dtype=self.dtype_policy,
            name="dropout",
        )

    def build(self, input_shape: Any = None) -> None:
        config = self.config
        self.word_embeddings = self._add_table("word_embeddings", config.vocab_size)
        self.position_embeddings = self._add_table(
            "position_embeddings", config.max_position_embeddings
        )
        self.segment_embeddings = self._add_table("segment_embeddings", config.type_vocab_size)
        self.layer_norm.build((None, None, config.hidden_size))

    def _add_table(self, name: str, rows: int) -> keras.Variable:
        return self.add_weight(
            name=name,
            shape=(rows, self.config.hidden_size),
            initializer=keras.initializers.TruncatedNormal(stddev=self.config.initializer_range),
            autocast=False,
        )

    def call(
        self,
        input_word_ids: Any,
        input_type_ids: Any | None = None,
        position_ids: Any | None = None,
        dropout_key: Any | None = None,
    ) -> Any:
        """Embed tokens.

        Args:
            input_word_ids: int [batch, length].
            input_type_ids: int [batch, length]; None for all 0.
            position_ids: int [batch, length]; None for 0, 1, 2 …; texts packed into one row restart
                at 0.
            dropout_key: int32 [2]; None for no dropout.

        Returns:
            [batch, length, hidden] in the compute dtype.
        """
        words = ops.take(self.word_embeddings, input_word_ids, axis=0)
        return self.of_words(words, input_type_ids, position_ids, dropout_key)

    def of_words(
        self,
        words: Any,
        input_type_ids: Any | None = None,
        position_ids: Any | None = None,
        dropout_key: Any | None = None,
    ) -> Any:
        """Compute `call` from looked-up word embeddings, float [batch, length, hidden]."""
        embeddings = words
        if position_ids is None:
            length = ops.shape(words)[1]
            embeddings = embeddings + self.position_embeddings[:length]
        else:
            embeddings = embeddings + ops.take(self.position_embeddings, position_ids, axis=0)
        embeddings = embeddings + self._segments(input_type_ids)
        embeddings = ops.cast(self.layer_norm(embeddings), self.compute_dtype)
        return self.dropout(embeddings, dropout_key=dropout_key)

    def _segments(self, input_type_ids: Any | None) -> Any:
        if input_type_ids is None:
            return self.segment_embeddings[0]
        rows, width = self.segment_embeddings.shape
        # A product with one-hot rows: the gradient of a look-up would add every token of the batch
        # to the same two rows, one after the other.
        one_hot = ops.one_hot(
            ops.reshape(input_type_ids, (-1,)), rows, dtype=self.segment_embeddings.dtype
        )
        segments = ops.matmul(one_hot, self.segment_embeddings)
        return ops.reshape(segments, (*ops.shape(input_type_ids), width))

    def compute_output_shape(self, input_shape: Any, *_: Any) -> Any:
        return (*input_shape, self.config.hidden_size)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "config": self.config.fields(),
            "dropout_stream": self.dropout_stream,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> BertEmbeddings:
        return cls(**{**config, "config": BertConfig(**config["config"])})

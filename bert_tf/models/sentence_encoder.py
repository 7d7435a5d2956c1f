"""Texts to vectors of one size, to be compared by their cosine."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.layers.pooling import pool_tokens, unit_vectors
from bert_tf.models.bert_model import BertModel
from bert_tf.models.encoder import BertEncoder

_SEQUENCES = ("input_word_ids", "input_mask", "input_type_ids", "position_ids")


@keras.saving.register_keras_serializable(package="bert_tf")
class BertSentenceEncoder(BertModel):
    """The encoder with pooled token vectors (Sentence-BERT, Reimers and Gurevych 2019, section 3).

    Args:
        config: shape and regularization.
        pooling, normalize, max_seq_length: see `EmbeddingRecipe`; the last one is only kept with
            the model.
        dtype: Keras policy or its name; None for the global one.
    """

    own_arguments = ("pooling", "normalize", "max_seq_length")
    huggingface_class = "BertModel"

    def __init__(
        self,
        config: BertConfig,
        *,
        pooling: str,
        normalize: bool,
        max_seq_length: int,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self.pooling = pooling
        self.normalize = normalize
        self.max_seq_length = max_seq_length
        self.encoder = BertEncoder(
            config, has_pooler=False, dtype=self.dtype_policy, name="encoder"
        )

    @property
    def recipe(self) -> EmbeddingRecipe:
        """How the vectors are made, which a model directory keeps."""
        return EmbeddingRecipe(
            pooling=self.pooling,
            normalize=self.normalize,
            max_seq_length=self.max_seq_length,
            is_trained=True,
        )

    def build(self, input_shape: Any = None) -> None:
        self.encoder.build_weights()
        self.built = True

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> Any:
        """Embeds sequences, whatever axes they are arranged in.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`: int [batch, texts, length] or
                [sequences, length]; optionally `position_ids`. Other keys are ignored.
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.

        Returns:
            float32 [batch, texts, hidden] or [sequences, hidden]; finite for sequences of padding
            alone.
        """
        shape = ops.shape(inputs["input_word_ids"])
        flat = {
            name: ops.reshape(inputs[name], (-1, shape[-1]))
            for name in _SEQUENCES
            if name in inputs
        }
        encoded = self.encoder.encode_inputs(flat, training=training, dropout_key=dropout_key)
        states = ops.cast(encoded["sequence_output"], "float32")
        vectors = pool_tokens(states, flat["input_mask"], self.pooling)
        if self.normalize:
            vectors = unit_vectors(vectors)
        return ops.reshape(vectors, (*shape[:-1], self.config.hidden_size))

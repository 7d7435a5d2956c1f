"""Extractive question answering: where an answer starts and ends."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.layers.projection import Projection
from bert_tf.models.bert_model import BertModel
from bert_tf.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="bert_tf")
class BertQuestionAnswerer(BertModel):
    """A start and an end score for every token (Devlin et al. 2019, section 4.2)."""

    huggingface_class = "BertForQuestionAnswering"

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, has_pooler=False, dtype=policy, name="encoder")
        self.span = Projection(2, initializer_range=None, dtype=policy, name="span")

    def build(self, input_shape: Any = None) -> None:
        self.encoder.build_weights()
        self.span.build((None, None, self.config.hidden_size))
        self.built = True

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> tuple[Any, Any]:
        """Scores every token as the answer's first and last.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`: int [batch, length];
                optionally `position_ids`. Other keys are ignored.
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.

        Returns:
            Start and end logits, each float32 [batch, length]. Padding and the question are scored
            too: the caller masks them.
        """
        encoded = self.encoder.encode_inputs(inputs, training=training, dropout_key=dropout_key)
        logits = ops.cast(self.span(encoded["sequence_output"]), "float32")
        return logits[..., 0], logits[..., 1]

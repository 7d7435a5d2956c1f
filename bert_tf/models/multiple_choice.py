"""Choosing among several texts that follow another one."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.models.linear_head import LinearHeadModel

_SEQUENCES = ("input_word_ids", "input_mask", "input_type_ids", "position_ids")


@keras.saving.register_keras_serializable(package="bert_tf")
class BertMultipleChoice(LinearHeadModel):
    """One score for each sequence of a context and a choice (Devlin et al. 2019, section 4.4).

    A linear layer of one output on the pooled output, as HuggingFace's `BertForMultipleChoice`.
    `hidden_dropout_prob` also precedes it.
    """

    has_pooler = True
    huggingface_class = "BertForMultipleChoice"
    reads_all_tokens = False

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, outputs=1, **kwargs)

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> Any:
        """Scores sequences, whatever axes they are arranged in.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`: int [batch, choices, length]
                or [sequences, length]; optionally `position_ids`. Other keys are ignored.
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.

        Returns:
            float32 logits [batch, choices] or [sequences].
        """
        shape = ops.shape(inputs["input_word_ids"])
        flat = {
            name: ops.reshape(inputs[name], (-1, shape[-1]))
            for name in _SEQUENCES
            if name in inputs
        }
        key = self.encoder.resolve_dropout_key(training, dropout_key)
        encoded = self.encoder.encode_inputs(
            flat, training=training, dropout_key=key, pooled_only=True
        )
        pooled = self.dropout(encoded["pooled_output"], dropout_key=key)
        return ops.reshape(ops.cast(self.classifier(pooled), "float32"), shape[:-1])

"""Classification of every token of a text, such as named entities or parts of speech."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.models.linear_head import LabelScorer


@keras.saving.register_keras_serializable(package="bert_tf")
class BertTokenClassifier(LabelScorer):
    """A linear layer on the last state of every token (Devlin et al. 2019, section 5.3).

    As HuggingFace's `BertForTokenClassification`.

    Args:
        config: shape and regularization; `hidden_dropout_prob` also precedes the linear layer.
        num_labels: number of logits per token.
        dtype: Keras policy or its name; None for the global one.
    """

    has_pooler = False
    huggingface_class = "BertForTokenClassification"

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> Any:
        """Scores the labels of every token.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`: int [batch, length];
                optionally `position_ids`. Other keys are ignored.
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.

        Returns:
            float32 logits [batch, length, labels]. Specials, padding and tokens that continue a
            word are scored too: the caller leaves them out.
        """
        key = self.encoder.resolve_dropout_key(training, dropout_key)
        encoded = self.encoder.encode_inputs(inputs, training=training, dropout_key=key)
        states = self.dropout(encoded["sequence_output"], dropout_key=key)
        return ops.cast(self.classifier(states), "float32")

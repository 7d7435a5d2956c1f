"""Classification of a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.models.linear_head import LabelScorer


@keras.saving.register_keras_serializable(package="bert_tf")
class BertClassifier(LabelScorer):
    """A linear layer on the pooled output (Devlin et al. 2019, section 4.1).

    Args:
        config: shape and regularization; `hidden_dropout_prob` also precedes the linear layer.
        num_labels: number of logits.
        problem_type: what HuggingFace's `config.json` calls the problem that the logits are for;
            None where one of the labels is chosen.
        initial_bias: what the linear layer's bias starts from, [labels]; () for zeros.
        dtype: Keras policy or its name; None for the global one.
    """

    has_pooler = True
    huggingface_class = "BertForSequenceClassification"
    reads_all_tokens = False
    own_arguments = ("num_labels", "problem_type")

    def __init__(
        self,
        config: BertConfig,
        num_labels: int,
        *,
        problem_type: str | None = None,
        initial_bias: Sequence[float] = (),
        **kwargs: Any,
    ):
        super().__init__(config, num_labels, **kwargs)
        self.problem_type = problem_type
        self._initial_bias = tuple(initial_bias)

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        if self._initial_bias:
            self.classifier.bias.assign(self._initial_bias)

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> Any:
        """Scores the labels.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`: int [batch, length];
                optionally `position_ids`. Other keys are ignored.
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.

        Returns:
            float32 logits [batch, labels].
        """
        key = self.encoder.resolve_dropout_key(training, dropout_key)
        encoded = self.encoder.encode_inputs(
            inputs, training=training, dropout_key=key, pooled_only=True
        )
        pooled = self.dropout(encoded["pooled_output"], dropout_key=key)
        return ops.cast(self.classifier(pooled), "float32")

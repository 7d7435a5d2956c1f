"""A number for a text or a pair of texts."""

from __future__ import annotations

from typing import Any

import keras

from bert_tf.config.bert import BertConfig
from bert_tf.models.classification import BertClassifier
from bert_tf.models.problem_type import ProblemType


@keras.saving.register_keras_serializable(package="bert_tf")
class BertRegressor(BertClassifier):
    """A linear layer of one output on the pooled output, as HuggingFace has it for STS-B.

    Its variables are trained for targets of mean 0 and deviation 1, whatever the targets' range;
    model directories hold the layer that gives the targets themselves
    (`bert_tf.weights.tensor_names`).

    Args:
        config: see `BertClassifier`.
        target_mean, target_scale: mean and standard deviation of the targets.
        dtype: Keras policy or its name; None for the global one.
    """

    own_arguments = ("target_mean", "target_scale")

    def __init__(
        self,
        config: BertConfig,
        *,
        target_mean: float = 0.0,
        target_scale: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(config, num_labels=1, problem_type=ProblemType.REGRESSION, **kwargs)
        self.target_mean = target_mean
        self.target_scale = target_scale

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> Any:
        """Predicts the targets: float32 [batch, 1]; see `BertClassifier.call`."""
        standardized = super().call(inputs, training=training, dropout_key=dropout_key)
        return standardized * self.target_scale + self.target_mean

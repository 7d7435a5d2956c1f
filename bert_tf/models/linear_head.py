"""The bases of models with an encoder, dropout and a linear layer."""

from __future__ import annotations

from typing import Any, ClassVar

from bert_tf.config.bert import BertConfig
from bert_tf.layers.dropout import StatelessDropout
from bert_tf.layers.projection import Projection
from bert_tf.models.bert_model import BertModel, head_dropout_stream
from bert_tf.models.encoder import BertEncoder


class LinearHeadModel(BertModel):
    """Base of models with a linear layer on top of the encoder.

    Args:
        config: shape and regularization; `hidden_dropout_prob` also precedes the linear layer.
        outputs: of the linear layer.
        dtype: Keras policy or its name; None for the global one.

    Attributes:
        has_pooler: whether the encoder has the pooler; set by a subclass.
    """

    has_pooler: ClassVar[bool]

    def __init__(self, config: BertConfig, outputs: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, has_pooler=self.has_pooler, dtype=policy, name="encoder")
        self.dropout = StatelessDropout(
            config.hidden_dropout_prob,
            stream=head_dropout_stream(config),
            dtype=policy,
            name="dropout",
        )
        # Not the encoder's range, in which a head of a small model learns little in its first
        # epochs.
        self.classifier = Projection(
            outputs, initializer_range=None, dtype=policy, name="classifier"
        )

    def build(self, input_shape: Any = None) -> None:
        self.encoder.build_weights()
        self.classifier.build((None, self.config.hidden_size))
        self.built = True


class LabelScorer(LinearHeadModel):
    """Base of models with one output of the linear layer per label.

    Args:
        config: see `LinearHeadModel`.
        num_labels: outputs of the linear layer.
        dtype: Keras policy or its name; None for the global one.
    """

    own_arguments: ClassVar[tuple[str, ...]] = ("num_labels",)

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any):
        super().__init__(config, num_labels, **kwargs)
        self.num_labels = num_labels

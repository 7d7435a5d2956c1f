"""The base of all models: made from a config, built without data, saved by Keras."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import keras

from bert_tf.config.bert import BertConfig


class BertModel(keras.Model):
    """Base of the models: made from a `BertConfig`, built without data.

    Args:
        config: shape and regularization.
        dtype: Keras policy or its name; None for the global one. It holds for all layers.

    Attributes:
        config: as given.
        huggingface_class: the class of HuggingFace's library with the same weights; a model whose
            head is new also registers with `bert_tf.weights.tensor_names.head_bindings`.
        reads_all_tokens: whether the head reads the last block's output of all tokens, not of the
            first and the masked ones only.
    """

    own_arguments: ClassVar[tuple[str, ...]] = ()
    huggingface_class: ClassVar[str]
    reads_all_tokens: ClassVar[bool] = True

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build_weights(self) -> None:
        """Creates all variables; the config decides their shapes."""
        if not self.built:
            self.build(None)

    def get_config(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.own_arguments}
        policy = keras.dtype_policies.serialize(self.dtype_policy)
        return {"config": self.config.fields(), **own, "name": self.name, "dtype": policy}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        policy = config["dtype"]
        if isinstance(policy, dict):
            policy = keras.dtype_policies.deserialize(policy)
        return cls(**{**config, "config": BertConfig(**config["config"]), "dtype": policy})

"""The base of all exported models: texts in, one graph that tokenizes, batches and predicts."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.signatures import BATCH_TOKENS, BATCHED, DEFAULT_BATCH_TOKENS, SERVING


@dataclasses.dataclass(frozen=True)
class _Untracked:
    """Keeps a Keras model out of tf.Module's sight: its variables are saved, its methods not."""

    model: Any


class TextModule(tf.Module, abc.ABC):
    """Base of the modules: string [n] inputs by name, outputs by name with n as their first axis.

    Saved it has two signatures: `serving_default` takes the texts alone, `batched` also takes
    `batch_tokens` (int32 scalar, tokens per batch inside the graph).

    Args:
        model: built Keras model with its weights, float32.
        tokenizer: the model's.

    Attributes:
        input_names: names of the inputs.
        list_inputs: those of them that hold several texts of each row: string [n, texts], in which
            an empty text is none.
    """

    input_names: ClassVar[tuple[str, ...]]
    list_inputs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: Any, tokenizer: WordPieceTokenizer):
        super().__init__(name=type(self).__name__)
        self.tokenizer = tokenizer
        self.model_weights = [variable.value for variable in model.weights]
        self._untracked = _Untracked(model)

    @property
    def model(self) -> Any:
        """The Keras model."""
        return self._untracked.model

    @abc.abstractmethod
    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """Outputs by name; graph-safe.

        Args:
            texts: string [n], or [n, texts], by the names of `inputs`.
            batch_tokens: int32 scalar, see `map_row_batches`.
        """

    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs; fewer than `input_names` where the task leaves some out."""
        return self.input_names

    def signatures(self) -> dict[str, Callable[..., Any]]:
        """The functions to save, by name, traced."""
        texts = {
            name: tf.TensorSpec(
                [None, None] if name in self.list_inputs else [None], tf.string, name=name
            )
            for name in self.inputs()
        }
        budget = tf.TensorSpec([], tf.int32, name=BATCH_TOKENS)

        @tf.function
        def predict(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            batch_tokens = given.pop(BATCH_TOKENS)
            return self.predict(given, batch_tokens)

        @tf.function
        def serve(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            return predict(**given, **{BATCH_TOKENS: tf.constant(DEFAULT_BATCH_TOKENS)})

        return {
            SERVING: serve.get_concrete_function(**texts),
            BATCHED: predict.get_concrete_function(**texts, **{BATCH_TOKENS: budget}),
        }

"""The base of all exported models: texts in, one graph that tokenizes, batches and predicts."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.layers.projection import fusible
from bert_tf.serving.request_checks import checked_ids, checked_texts
from bert_tf.serving.signatures import (
    BATCH_TOKENS,
    BATCHED,
    DEFAULT_BATCH_TOKENS,
    IDS,
    IDS_INPUTS,
    NOT_OF_ROWS,
    SERVING,
)

Signatures = dict[str, Callable[..., Any]]


@dataclasses.dataclass(frozen=True)
class _Untracked:
    """Keeps a Keras model out of tf.Module's sight: its variables are saved, its methods not."""

    model: Any


class TextModule(tf.Module, abc.ABC):
    """Base of the modules: string [n] inputs by name, outputs by name with n as their first axis.

    Saved it has three signatures: `serving_default` takes the texts alone, `batched` also takes
    `batch_tokens` (int32 scalar, tokens per batch inside the graph), and `ids` takes rows that
    were tokenized and padded elsewhere.

    Args:
        model: built Keras model with its weights, float32.
        tokenizer: the model's.

    Attributes:
        input_names: names of the inputs.
        list_inputs: those of them that hold several texts of each row: string [n, texts], in which
            an empty text is none.
        ids_rank: axes of tokenized rows: 2 for [n, length], 3 for [n, sequences, length].
    """

    input_names: ClassVar[tuple[str, ...]]
    list_inputs: ClassVar[tuple[str, ...]] = ()
    ids_rank: ClassVar[int] = 2

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

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """What the model's head gives for tokenized rows, by name; graph-safe.

        Args:
            batch: `input_word_ids`, `input_mask` (1 for tokens, 0 for padding) and
                `input_type_ids`: int32 [n, length], or [n, sequences, length].
        """
        return {"logits": self.model(batch, training=False)}

    def signatures(self) -> Signatures:
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
            texts = checked_texts(given, list_inputs=self.list_inputs)
            batch_tokens = texts.pop(BATCH_TOKENS)
            with fusible(self.model):
                return self.predict(texts, batch_tokens)

        @tf.function
        def serve(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            return _of_rows(predict(**given, **{BATCH_TOKENS: tf.constant(DEFAULT_BATCH_TOKENS)}))

        return {
            SERVING: serve.get_concrete_function(**texts),
            BATCHED: predict.get_concrete_function(**texts, **{BATCH_TOKENS: budget}),
            IDS: self._ids_signature(),
        }

    def ids_signatures(self) -> Signatures:
        """The functions to save of a model without texts, by name, traced; none tokenizes."""
        ids = self._ids_signature()
        return {SERVING: ids, IDS: ids}

    def without_texts(self) -> tf.Module:
        """What is saved with `ids_signatures`: the weights alone."""
        weights = tf.Module(name=self.name)
        weights.model_weights = self.model_weights
        return weights

    def _ids_signature(self) -> Callable[..., Any]:
        @tf.function
        def head(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            batch = checked_ids(given, rank=self.ids_rank, config=self.model.config)
            with fusible(self.model):
                return self.head_outputs(batch)

        shape = [None] * self.ids_rank
        rows = {name: tf.TensorSpec(shape, tf.int32, name=name) for name in IDS_INPUTS}
        concrete: Callable[..., Any] = head.get_concrete_function(**rows)
        return concrete


def _of_rows(outputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Repeats what is not of the rows for each: TensorFlow Serving answers a request that lists
    rows only if every output has one of each (MakeRowFormatJsonFromTensors of its json_tensor.cc).
    """
    of_rows = next(values for name, values in outputs.items() if name not in NOT_OF_ROWS)
    rows = tf.shape(of_rows)[0]
    return {
        name: tf.repeat(values[None], rows, axis=0) if name in NOT_OF_ROWS else values
        for name, values in outputs.items()
    }

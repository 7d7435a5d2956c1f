"""The base of tasks as exported models need them: a head, texts in, predictions out.

Tasks to fine-tune for add training (`task.py`). Tasks that pretraining heads solve add the search
for the head in a pretrained model.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertMaskedLM
from bert_tf.serving.row_batches import single_batch
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.base.declaration import (
    PretrainedTaskDeclaration,
    ServedTaskDeclaration,
    TaskCard,
    imported,
)
from bert_tf.tasks.base.host_task import fields_as_settings, fields_from_settings
from bert_tf.weights.model_directory import ModelDirectory


class ServedTask(abc.ABC):
    """A task as exported models need it: a head, texts in, predictions out.

    Subclasses are frozen dataclasses; `task.json` keeps their fields.
    """

    declaration: ClassVar[ServedTaskDeclaration]
    max_seq_length: int

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Restore a model directory's task from `task.json`.

        Raises:
            KeyError: a setting is missing.
        """
        hints = get_type_hints(cls)
        values = fields_from_settings(dataclasses.fields(cls), settings)  # type: ignore[arg-type]
        # A field that is a dataclass, such as columns, is an object in JSON.
        nested = {
            name: hints[name](**fields_from_settings(dataclasses.fields(hints[name]), value))
            for name, value in values.items()
            if isinstance(value, dict)
        }
        return cls(**{**values, **nested})

    def settings(self) -> dict[str, Any]:
        """Return the content of `task.json`."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {"task": self.declaration.name, **fields_as_settings(fields, self)}

    @abc.abstractmethod
    def build_model(self, config: BertConfig, *, policy: str) -> Any:
        """Make a Keras model with this task's head.

        Args:
            config: sizes of the encoder.
            policy: dtype policy of Keras, `float32` or `mixed_bfloat16`.
        """

    def folded_into(self, model: Any) -> Self:
        """Move factors of the predictions into the weights of a built model, in place.

        Other libraries load exported weights and know nothing of the task's factors.

        Returns:
            The task for the changed model, with equal predictions.
        """
        return self

    @abc.abstractmethod
    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> TextModule:
        """Make the module to export, from texts to predictions.

        Args:
            model: built, in float32.
            tokenizer: a tokenizer with the model's vocabulary.
        """

    def host(self) -> Any:
        """Make the task's own `HostTask`."""
        assert self.declaration.host is not None
        return imported(self.declaration.host).from_settings(self.settings())

    @abc.abstractmethod
    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Run the model on sequences, with the outputs that `HostTask.reduce` takes.

        Args:
            batch: `input_word_ids`, `input_mask`, `input_type_ids`, int32 [n, length], and
                `HostRows.inputs`.

        Returns:
            Tensors [n, …] by name.
        """

    def host_predictions(
        self, model: Any, tokenizer: WordPieceTokenizer, texts: Mapping[str, Sequence[Any]]
    ) -> dict[str, Any]:
        """Predict texts as `host` does, with the Keras model in the place of an exported graph."""
        host = self.host()
        host_tokenizer = HostTokenizer(tokenizer.vocab, lowercase=tokenizer.lowercase)
        rows = host.encode(host_tokenizer, texts)
        more_inputs = {name: tf.constant(values, tf.int32) for name, values in rows.inputs.items()}
        batch = single_batch(rows.sequences, tokenizer.pad_id) | more_inputs
        outputs = {
            name: values.numpy() for name, values in self.sequence_outputs(model, batch).items()
        }
        reduced = host.reduce(rows, np.arange(len(rows.sequences)), outputs)
        return host.predict(rows, texts, reduced)

    def reference_outputs(
        self, model: Any, tokenizer: WordPieceTokenizer, texts: Mapping[str, Sequence[Any]]
    ) -> dict[str, np.ndarray]:
        """Return the fractional numbers of `host_predictions`, to check an exported model."""
        return {
            name: values
            for name, values in self.host_predictions(model, tokenizer, texts).items()
            if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.floating)
        }

    @abc.abstractmethod
    def card(self) -> TaskCard:
        """Return the task's part of a model card."""


class PretrainedTask(ServedTask):
    """A task whose head comes with pretrained weights.

    Attributes:
        head_tensor: HuggingFace's name of a tensor that every such head has.
        head: name of the head, for messages.
        head_classes: HuggingFace's classes with this head, for messages.
    """

    declaration: ClassVar[PretrainedTaskDeclaration]
    head_tensor: ClassVar[str]
    head: ClassVar[str]
    head_classes: ClassVar[str]

    @classmethod
    @abc.abstractmethod
    def of_pretrained(cls, directory: ModelDirectory, config: Any) -> Self:
        """Make the task by its section of `export`; UsageError if the model lacks the head."""

    @classmethod
    def check_head(cls, directory: ModelDirectory) -> None:
        """Raise UsageError if a model lacks the head of the task."""
        if cls.head_tensor not in directory.tensors:
            raise UsageError(
                f"--task {cls.declaration.name}: {directory.path} has no {cls.head}; take a run "
                f"of bert-pipeline train, or a HuggingFace folder of {cls.head_classes}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedLMTask(PretrainedTask):
    """A task of the masked-LM head (Devlin et al. 2019, section 3.1, task 1)."""

    head_tensor: ClassVar[str] = "cls.predictions.transform.dense.weight"
    head: ClassVar[str] = "masked-LM head, which predicts masked tokens"
    head_classes: ClassVar[str] = "BertForMaskedLM or BertForPreTraining"

    def build_model(self, config: BertConfig, *, policy: str) -> BertMaskedLM:
        name = self.declaration.name.replace("-", "_")
        return BertMaskedLM(config, dtype=policy, name=name)

    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {"logits": model(batch, training=False)}

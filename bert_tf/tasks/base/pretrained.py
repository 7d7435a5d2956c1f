"""The base of tasks that pretraining heads solve without fine-tuning."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Self

import tensorflow as tf

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.models.heads import BertMaskedLM
from bert_tf.tasks.base.declaration import PretrainedTaskDeclaration
from bert_tf.tasks.base.task import ServedTask
from bert_tf.weights.model_directory import ModelDirectory


class PretrainedTask(ServedTask):
    """A task whose head comes with pretrained weights.

    Attributes:
        head_tensor: HuggingFace's name of a tensor that every such head has.
        head: what the head is, for messages.
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

"""What every format of exported models offers."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.loading import TrainedModel
from bert_tf.tasks.base.task_card import TaskCard


class ModelFormat(Protocol):
    """How a trained model is written for a library, and how that library loads it.

    Its module has one as `FORMAT`.
    """

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """Writes a model.

        Args:
            trained: the model.
            output: a folder that exists; other files in it stay.
            console: for progress.

        Returns:
            What the format lacks, or its library computes otherwise, a sentence each.

        Raises:
            UsageError: the library has no such model.
            BertPipelineError: what was written computes something else.
        """

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """How the library loads the folder, for the model card: lines of Markdown.

        Args:
            card: the part of the card about the task.
            config: the model's.
            lowercase: whether texts are lower-cased.
        """

"""What every format of exported models offers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

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


class QuantizableFormat(ModelFormat, Protocol):
    """A format with a graph of token ids, which can have one of 8-bit integers beside it."""

    def write_int8(self, folder: Path, batches: Sequence[dict[str, np.ndarray]]) -> None:
        """Writes the int8 graph.

        Args:
            folder: with the float32 graph.
            batches: inputs to calibrate with, see `quantized`.
        """

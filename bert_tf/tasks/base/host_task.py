"""What is done around a graph that takes token ids: texts in, predictions out, on the host.

Engines that do not run TensorFlow need it. Implementations import neither TensorFlow nor Keras.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.task_fields import fields_from_settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostRows:
    """Rows of texts as sequences of a graph.

    Attributes:
        sequences: those of all rows; a row may have several.
        inputs: what else the graph takes, int64 [sequences, …] by name.
        details: what the task needs to turn outputs into predictions.
    """

    sequences: EncodedRows
    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    details: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostTask(abc.ABC):
    """The steps of a task before and after its graph (see `bert_tf.weights.onnx_graph`).

    Fields of a subclass are settings of `task.json` by the same name.

    Attributes:
        declaration: the task's entry in the registry.
        input_names: of the texts, or lists of texts, that a row has.
        list_inputs: names of those that are lists.
        max_seq_length: tokens per sequence, [CLS] and [SEP] included.
    """

    declaration: ClassVar[ServedTaskDeclaration]
    list_inputs: ClassVar[tuple[str, ...]] = ()

    input_names: tuple[str, ...]
    max_seq_length: int

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Makes the task of a model from its `task.json`.

        Raises:
            KeyError: a setting is missing.
        """
        columns = settings["columns"]
        names = tuple(name for name in cls.declaration.inputs if columns[name] is not None)
        fields = [field for field in dataclasses.fields(cls) if field.name != "input_names"]
        return cls(input_names=names, **fields_from_settings(fields, settings))

    @abc.abstractmethod
    def encode(self, tokenizer: HostTokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """Turns rows into sequences; there may be no row, and rows without a sequence.

        Args:
            tokenizer: the model's.
            columns: by the names of `input_names` a text of each row; or a list of texts, filled
                up with empty texts to the same length in all rows.
        """

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Keeps of a batch's outputs what `predict` needs.

        Args:
            rows: of `encode`.
            chosen: int [n], which of the sequences are in the batch.
            outputs: of the graph, [n, …].

        Returns:
            Arrays [n, …] whose shapes beyond the first axis do not depend on the batch; n may
            be 0.
        """
        return outputs

    @abc.abstractmethod
    def predict(
        self,
        rows: HostRows,
        columns: Mapping[str, Sequence[Any]],
        reduced: dict[str, np.ndarray],
    ) -> dict[str, Any]:
        """Returns the outputs of an exported model, [rows] by name.

        Args:
            rows: of `encode`.
            columns: as `encode` had them.
            reduced: of all sequences, in their order.
        """

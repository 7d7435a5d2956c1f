"""What tasks do on the host whose rows are a text or a pair of texts; `TableModule` in NumPy."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from bert_tf.base.arrays import group_means
from bert_tf.config.sections.finetuning import HEAD
from bert_tf.data.rows.host_rows import pack_host_pairs, pack_host_texts
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.serving.signatures import LOST_TOKENS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHost(abc.ABC):
    """A `HostTask` that predicts from one vector of logits for each sequence.

    Attributes:
        declaration: the task's entry in the registry.
        input_names: of one text, or two.
        max_seq_length: tokens per sequence, [CLS] and [SEP] included.
        long_texts: what is read of longer texts; of windows, the logits are averaged.
    """

    declaration: ClassVar[ServedTaskDeclaration]
    list_inputs: ClassVar[tuple[str, ...]] = ()

    input_names: tuple[str, ...]
    max_seq_length: int
    long_texts: str

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """See `HostTask.from_settings`."""
        columns = settings["columns"]
        first, *second = cls.declaration.inputs
        return cls(
            input_names=(first, *(name for name in second if columns[name] is not None)),
            max_seq_length=settings["max_seq_length"],
            long_texts=settings.get("long_texts", HEAD),
            **cls.added_settings(settings),
        )

    @classmethod
    def added_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the fields that a subclass adds."""
        return {}

    @abc.abstractmethod
    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """Predictions [rows] by name, from logits float32 [rows, logits]."""

    def encode(self, tokenizer: HostTokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """See `HostTask.encode`."""
        first, *second = (tokenizer.tokenize(columns[name]) for name in self.input_names)
        if second:
            sequences = pack_host_pairs(
                first, *second, max_seq_length=self.max_seq_length, tokenizer=tokenizer
            )
        else:
            sequences = pack_host_texts(
                first,
                method=self.long_texts,
                max_seq_length=self.max_seq_length,
                tokenizer=tokenizer,
            )
        return HostRows(sequences=sequences)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The logits."""
        return outputs

    def predict(
        self,
        rows: HostRows,
        columns: Mapping[str, Sequence[Any]],
        reduced: dict[str, np.ndarray],
    ) -> dict[str, Any]:
        """See `HostTask.predict`."""
        logits, owners = reduced["logits"], rows.sequences.owners
        lost_tokens = rows.sequences.lost_tokens
        assert lost_tokens is not None
        if owners is not None:
            firsts, means = group_means({"logits": logits}, owners)
            logits, lost_tokens = means["logits"], lost_tokens[firsts]
        return {**self.predictions(logits), LOST_TOKENS: lost_tokens.astype(np.int32)}

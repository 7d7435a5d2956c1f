"""What tasks do on the host whose rows are a text or a pair of texts; `TableModule` in NumPy."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.base.arrays import group_means
from bert_tf.config.sections.finetuning import HEAD
from bert_tf.data.rows.host_rows import pack_host_pairs, pack_host_texts
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.serving.signatures import LOST_TOKENS
from bert_tf.tasks.base.host_task import HostRows, HostTask


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableHost(HostTask):
    """Predicts from one vector of logits for each sequence.

    Attributes:
        long_texts: what is read of longer texts; of windows, the logits are averaged.
    """

    long_texts: str = HEAD

    @abc.abstractmethod
    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """Predictions [rows] by name, from logits float32 [rows, logits]."""

    def encode(self, tokenizer: HostTokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
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

    def predict(
        self,
        rows: HostRows,
        columns: Mapping[str, Sequence[Any]],
        reduced: dict[str, np.ndarray],
    ) -> dict[str, Any]:
        logits, owners = reduced["logits"], rows.sequences.owners
        lost_tokens = rows.sequences.lost_tokens
        assert lost_tokens is not None
        if owners is not None:
            firsts, means = group_means({"logits": logits}, owners)
            logits, lost_tokens = means["logits"], lost_tokens[firsts]
        return {**self.predictions(logits), LOST_TOKENS: lost_tokens.astype(np.int32)}

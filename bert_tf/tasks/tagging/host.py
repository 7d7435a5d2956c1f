"""Tags and entities from logits, in NumPy: for evaluation and for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.predictions import prediction_columns
from bert_tf.tasks.tagging.rows.word_rows import WordRows, encode_words


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingHost(HostTask):
    """See `TaggingTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = TAGGING

    labels: tuple[str, ...]
    scheme: str
    window_stride: int

    def encode(self, tokenizer: HostTokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """See `HostTask.encode`."""
        words = encode_words(
            tokenizer,
            columns["text"],
            max_seq_length=self.max_seq_length,
            stride=self.window_stride,
        )
        return HostRows(sequences=words.rows, details=words)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """See `best_tags`."""
        return best_tags(outputs["logits"], self.max_seq_length)

    def predict(
        self,
        rows: HostRows,
        columns: Mapping[str, Sequence[Any]],
        reduced: dict[str, np.ndarray],
    ) -> dict[str, Any]:
        """See `tag_predictions`."""
        return tag_predictions(columns["text"], rows.details, reduced, self.labels, self.scheme)


def best_tags(logits: np.ndarray, max_seq_length: int) -> dict[str, np.ndarray]:
    """The likeliest tag of each token, int32, and its probability, float32.

    Args:
        logits: float [rows, length, labels].
        max_seq_length: what the rows are filled up to: both are [rows, max_seq_length].
    """
    kept = logits[:, :max_seq_length]
    shape = (len(kept), max_seq_length)
    above = kept - kept.max(axis=-1, keepdims=True)
    tags, probabilities = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    tags[:, : kept.shape[1]] = kept.argmax(axis=-1)
    probabilities[:, : kept.shape[1]] = 1.0 / np.exp(above).sum(axis=-1)
    return {"tags": tags, "probabilities": probabilities}


def tag_predictions(
    texts: Sequence[str],
    words: WordRows,
    reduced: Mapping[str, np.ndarray],
    labels: Sequence[str],
    scheme: str,
) -> dict[str, Any]:
    """The columns of `prediction_columns`, from what `best_tags` gave of all windows."""
    place = words.windows, words.positions
    tags = np.array(labels, object)[reduced["tags"][place]].tolist()
    return prediction_columns(texts, words.words, tags, reduced["probabilities"][place], scheme)

"""Vectors of texts and their cosines from token vectors, in NumPy, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.config.sections.finetuning import HEAD
from bert_tf.data.rows.host_rows import pack_host_texts
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.serving.signatures import EMBEDDING, LOST_TOKENS, PAIR_EMBEDDING
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.similarity.options import SIMILARITY

_SMALLEST_NORM = 1e-12


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarityHost(HostTask):
    """See `SimilarityModule` for the predictions, and `EmbeddingRecipe` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = SIMILARITY

    pooling: str
    normalize: bool

    def encode(self, tokenizer: HostTokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        # The first texts of all rows, then the second ones.
        texts = [text for name in self.input_names for text in columns[name]]
        sequences = pack_host_texts(
            tokenizer.tokenize(texts),
            method=HEAD,
            max_seq_length=self.max_seq_length,
            tokenizer=tokenizer,
        )
        return HostRows(sequences=sequences)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        states = outputs["sequence_output"]
        vectors = pooled_tokens(states, rows.sequences.lengths[chosen], self.pooling)
        if self.normalize:
            vectors = normalized(vectors)
        return {"vectors": vectors}

    def predict(
        self,
        rows: HostRows,
        columns: Mapping[str, Sequence[Any]],
        reduced: dict[str, np.ndarray],
    ) -> dict[str, Any]:
        first, second = np.split(reduced["vectors"], 2)
        lost_tokens = rows.sequences.lost_tokens
        assert lost_tokens is not None
        return {
            **pair_predictions(first, second),
            LOST_TOKENS: lost_tokens.reshape(2, -1).sum(axis=0).astype(np.int32),
        }


def pooled_tokens(states: np.ndarray, lengths: np.ndarray, pooling: str) -> np.ndarray:
    """`pool_tokens` in NumPy, float32 [texts, length, hidden] to [texts, hidden]."""
    if pooling == "cls":
        return states[:, 0]
    is_token = (np.arange(states.shape[1]) < lengths[:, None])[:, :, None]
    if pooling == "max":
        return states.max(axis=1, where=is_token, initial=-np.inf)
    total: np.ndarray = states.sum(axis=1, where=is_token)
    return total / lengths[:, None].astype(np.float32)


def pair_predictions(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Vectors [rows, hidden] and their cosines, as an exported model names them."""
    return {
        EMBEDDING: first,
        PAIR_EMBEDDING: second,
        "predicted_similarity": similarities_of(first, second),
    }


def similarities_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosines of float [..., hidden] with float [..., hidden], float64 [...]."""
    return np.einsum(
        "...h,...h->...",
        normalized(first.astype(np.float64)),
        normalized(second.astype(np.float64)),
    )


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Vectors [..., hidden] divided by their Euclidean norm, which is at least 1e-12."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, _SMALLEST_NORM)

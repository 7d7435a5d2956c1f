"""Vectors of texts in NumPy, and their measures on labeled rows.

The evaluators of sentence-transformers define the measures. The loss of all rows as one batch is
measured, too, without code of the training losses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.data.rows.host_rows import pack_host_texts
from bert_tf.data.text.host_wordpiece import Tokenizer
from bert_tf.serving.signatures import EMBEDDING, LOST_TOKENS, PAIR_EMBEDDING
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.base.labels import pearson, spearman
from bert_tf.tasks.base.prediction_rows import (
    TaskReport,
    TaskResults,
    exact_values,
    labeled_rows,
    prediction_rows,
)
from bert_tf.tasks.base.standard_errors import error_of_mean, jackknife_errors
from bert_tf.tasks.similarity.options import SIMILARITY

if TYPE_CHECKING:
    from bert_tf.data.tables.file_rows import FileRows

_SMALLEST_NORM = 1e-12


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarityHost(HostTask):
    """The task around its graph.

    See `SimilarityModule` for the predictions, and `EmbeddingRecipe` for the fields.
    """

    declaration: ClassVar[ServedTaskDeclaration] = SIMILARITY

    pooling: str
    normalize: bool

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        # The first texts of all rows, then the second ones.
        texts = [text for name in self.input_names for text in columns[name]]
        sequences = pack_host_texts(
            tokenizer.tokenize_texts(texts),
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
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        first, second = np.split(reduced["vectors"], 2)
        lost_tokens = rows.sequences.lost_tokens
        assert lost_tokens is not None
        return {
            **pair_predictions(first, second),
            LOST_TOKENS: lost_tokens.reshape(2, -1).sum(axis=0).astype(np.int32),
        }


def pooled_tokens(states: np.ndarray, lengths: np.ndarray, pooling: str) -> np.ndarray:
    """Pool the states of tokens in NumPy, as `pool_tokens` does in the graph.

    Args:
        states: float32 [texts, length, hidden].
        lengths: int [texts], tokens of each.
        pooling: `mean`, `cls` or `max`.

    Returns:
        float32 [texts, hidden].
    """
    if pooling == "cls":
        return states[:, 0]
    is_token = (np.arange(states.shape[1]) < lengths[:, None])[:, :, None]
    if pooling == "max":
        return states.max(axis=1, where=is_token, initial=-np.inf)
    total: np.ndarray = states.sum(axis=1, where=is_token)
    return total / lengths[:, None].astype(np.float32)


def pair_predictions(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Name vectors [rows, hidden] and their cosines as an exported model does."""
    return {
        EMBEDDING: first,
        PAIR_EMBEDDING: second,
        "predicted_similarity": similarities_of(first, second),
    }


def similarities_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosines of float [..., hidden] with float [..., hidden], float64 [...]."""
    return np.einsum(
        "...h,...h->...",
        normalized(first.astype(np.float64)),
        normalized(second.astype(np.float64)),
    )


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Divide vectors [..., hidden] by their Euclidean norm, which counts as at least 1e-12."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, _SMALLEST_NORM)


_TOP = 10  # results of a search that count
_BLOCK_SCORES = 1 << 24  # similarities that are held at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Retrieval:
    """The success of anchors in finding their positives among all positives and negatives.

    Attributes:
        metrics: `mrr@10`, `recall@1`, `recall@10`: means over distinct anchors
            (`InformationRetrievalEvaluator`).
        errors: standard errors of these, which count anchors as independent.
        ranks: int64 [rows], rank of each row's positive, behind texts of equal similarity.
        losses: float64 [rows], cross-entropy of the positive among texts that do not match.
    """

    metrics: dict[str, float]
    errors: dict[str, float]
    ranks: np.ndarray
    losses: np.ndarray


def retrieval(embeddings: np.ndarray, text_ids: np.ndarray, *, scale: float) -> Retrieval:
    """Compare every anchor with every distinct positive and negative; see `ranking_logits`.

    Only a block of similarities is held at once, so memory does not grow with the square of the
    rows.

    Args:
        embeddings: float32 [rows, texts, hidden]: anchor, positive, any number of negatives.
        text_ids: int [rows, texts], equal for equal texts.
        scale: factor of cosines in the loss.
    """
    from scipy.special import logsumexp  # engines load this file for its predictions

    unit = normalized(embeddings)
    anchor_ids, firsts, anchor_of_row = np.unique(
        text_ids[:, 0], return_index=True, return_inverse=True
    )
    anchors = unit[firsts, 0]
    document_ids, places, documents_of_row = np.unique(
        text_ids[:, 1:], return_index=True, return_inverse=True
    )
    documents = unit[:, 1:].reshape(-1, unit.shape[-1])[places]
    positive_of_row = documents_of_row.reshape(len(unit), -1)[:, 0]

    # Each distinct match of an anchor and a document, by anchor.
    matches, match_of_row = np.unique(
        np.stack([anchor_of_row, positive_of_row], axis=1), axis=0, return_inverse=True
    )
    match_of_row = match_of_row.reshape(-1)
    ranks = np.empty(len(matches), np.int64)
    losses = np.empty(len(matches), np.float64)
    own_document = _position(document_ids, anchor_ids)
    block = max(1, _BLOCK_SCORES // len(documents))
    for begin in range(0, len(anchors), block):
        scores = (anchors[begin : begin + block] @ documents.T).astype(np.float64)
        chosen = slice(*np.searchsorted(matches[:, 0], [begin, begin + block]))
        rows = matches[chosen, 0] - begin
        columns = matches[chosen, 1]
        right = scores[rows, columns]
        ranks[chosen] = [
            np.count_nonzero(scores[row] >= score) for row, score in zip(rows, right, strict=True)
        ]
        # Leave only texts that do not match: neither a positive of the anchor nor itself.
        scores[rows, columns] = -np.inf
        own = own_document[begin : begin + block]
        scores[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
        wrong = logsumexp(scale * scores, axis=1)
        losses[chosen] = np.logaddexp(scale * right, wrong[rows]) - scale * right
    counts = np.bincount(matches[:, 0])
    starts = np.cumsum(counts) - counts
    best = np.minimum.reduceat(ranks, starts)
    of_anchors = {f"mrr@{_TOP}": np.where(best <= _TOP, 1 / best, 0.0)}
    for k in (1, _TOP):
        of_anchors[f"recall@{k}"] = np.add.reduceat(ranks <= k, starts, dtype=np.int64) / counts
    return Retrieval(
        metrics={name: float(values.mean()) for name, values in of_anchors.items()},
        errors={name: error_of_mean(values) for name, values in of_anchors.items()},
        ranks=ranks[match_of_row],
        losses=losses[match_of_row],
    )


def score_metrics(scores: np.ndarray, similarities: np.ndarray) -> dict[str, float]:
    """Compute `spearman` and `pearson` of cosines with scores (`EmbeddingSimilarityEvaluator`).

    Args:
        scores, similarities: float [rows].
    """
    wide = similarities.astype(np.float64)
    return {"spearman": spearman(scores, wide), "pearson": pearson(scores, wide)}


def cosent(scores: np.ndarray, similarities: np.ndarray, *, scale: float) -> float:
    """Compute the CoSENT loss of all rows as one batch, in n log n steps; see `cosent_loss`.

    In the order of their scores, the rows with a higher score than a row are the last ones from
    some place on. So a running sum from the end contains the inner sums of all rows.

    Args:
        scores: float64 [rows].
        similarities: cosines, float [rows].
        scale: factor of the cosines.
    """
    from scipy.special import logsumexp

    order = np.argsort(scores, kind="stable")
    scores = scores[order]
    terms = scale * similarities[order].astype(np.float64)
    # For each place, the log of the sum of exp(-term) from there on.
    tails = np.append(np.logaddexp.accumulate(-terms[::-1])[::-1], -np.inf)
    higher = np.searchsorted(scores, scores, side="right")
    return float(logsumexp(np.append(terms + tails[higher], 0.0)))


def _position(sorted_ids: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the positions of ids in ascending ones, int64 [ids], -1 if missing."""
    places = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.where(sorted_ids[places] == ids, places, -1)


def scored_results(
    source: FileRows, scores: np.ndarray, predicted: Mapping[str, Any], *, scale: float
) -> TaskResults:
    """Measure `predicted_similarity` of scored pairs.

    Args:
        source: the rows, which their places name.
        scores: float64 [rows].
        predicted: outputs by name.
        scale: factor of cosines in the loss.
    """
    similarities = np.asarray(predicted["predicted_similarity"])
    warnings: tuple[str, ...] = ()
    if not np.ptp(scores):
        warnings = (
            f"the score is {scores[0]:g} in every row, so correlations are not defined and "
            "reported as 0",
        )
    return TaskResults(
        metrics={
            "loss": cosent(scores, similarities, scale=scale),
            **score_metrics(scores, similarities),
        },
        errors=jackknife_errors(score_metrics, scores, similarities),
        predictions=labeled_rows(SIMILARITY.predictions, source, scores, predicted),
        report=TaskReport(warnings=warnings),
    )


def matched_results(
    source: FileRows,
    vectors: np.ndarray,
    text_ids: np.ndarray,
    predicted: Mapping[str, Any],
    *,
    scale: float,
) -> TaskResults:
    """Measure pairs and triplets; each row has the rank of its positive.

    Args:
        source: the rows, which their places name.
        vectors: float32 [rows, texts, hidden]: anchor, positive, any number of negatives.
        text_ids: int [rows, texts], equal for equal texts.
        predicted: outputs by name; its first rows are the pairs of anchor and positive.
        scale: factor of cosines in the loss.
    """
    retrieved = retrieval(vectors, text_ids, scale=scale)
    metrics = {"loss": float(retrieved.losses.mean()), **retrieved.metrics}
    errors = dict(retrieved.errors)
    pairs = {"predicted_similarity": np.asarray(predicted["predicted_similarity"])[: len(source)]}
    rows = prediction_rows(SIMILARITY.predictions, pairs)
    named = source.place_columns
    # Anchors and positives of several rows are named by the line of their first.
    anchors = _first_lines(source.lines, text_ids[:, 0])
    positives = _first_lines(source.lines, text_ids[:, 1])
    for row, rank, anchor, positive in zip(
        rows, retrieved.ranks.tolist(), anchors, positives, strict=True
    ):
        row |= {"rank": rank, "anchor": anchor, "positive": positive}
    if vectors.shape[1] > 2:
        cosines = similarities_of(vectors[:, :1], vectors[:, 1:])
        is_nearer = cosines[:, :1] > cosines[:, 1:]
        metrics["triplet_accuracy"] = float(is_nearer.mean())
        errors["triplet_accuracy"] = error_of_mean(is_nearer.mean(axis=1))
        for row, negatives in zip(rows, exact_values(cosines[:, 1:]), strict=True):
            row["negative_similarity"] = max(negatives)
            row["negative_similarities"] = negatives
    return TaskResults(
        metrics=metrics,
        errors=errors,
        predictions=[
            {**dict(zip(named, where, strict=True)), **row}
            for *where, row in zip(*named.values(), rows, strict=True)
        ],
    )


def _first_lines(lines: Sequence[int], ids: np.ndarray) -> list[int]:
    """Return the first line that has the text of each row."""
    _, firsts, number = np.unique(ids, return_index=True, return_inverse=True)
    return [lines[row] for row in firsts[number].tolist()]

"""What vectors are measured as: metrics, the loss of all rows, a prediction for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.base.task import TaskReport, TaskResults
from bert_tf.tasks.similarity.cosines import similarities_of
from bert_tf.tasks.similarity.metrics import cosent, retrieval, score_metrics
from bert_tf.tasks.similarity.options import SIMILARITY


def scored_results(
    lines: Sequence[int], scores: np.ndarray, predicted: Mapping[str, Any], *, scale: float
) -> TaskResults:
    """Results of scored pairs.

    Args:
        lines: of each row in its file.
        scores: float64 [rows].
        predicted: with `predicted_similarity` [rows].
        scale: of the loss.
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
        predictions=[
            {"line": line, "label": label, **row}
            for line, label, row in zip(
                lines,
                scores.tolist(),
                prediction_rows(SIMILARITY.predictions, predicted),
                strict=True,
            )
        ],
        report=TaskReport(warnings=warnings),
    )


def matched_results(
    lines: Sequence[int],
    vectors: np.ndarray,
    text_ids: np.ndarray,
    predicted: Mapping[str, Any],
    *,
    scale: float,
) -> TaskResults:
    """Results of pairs and triplets; each row with the rank of its positive.

    Args:
        lines: of each row in its file.
        vectors: float32 [rows, texts, hidden]: anchor, positive, any number of negatives.
        text_ids: int [rows, texts], equal for equal texts.
        predicted: with `predicted_similarity` of the rows' pairs first.
        scale: of the loss.
    """
    found = retrieval(vectors, text_ids, scale=scale)
    metrics = {"loss": float(found.losses.mean()), **found.metrics}
    pairs = {"predicted_similarity": np.asarray(predicted["predicted_similarity"])[: len(lines)]}
    rows = prediction_rows(SIMILARITY.predictions, pairs)
    for row, rank in zip(rows, found.ranks.tolist(), strict=True):
        row["rank"] = rank
    if vectors.shape[1] > 2:
        cosines = similarities_of(vectors[:, :1], vectors[:, 1:])
        metrics["triplet_accuracy"] = float((cosines[:, :1] > cosines[:, 1:]).mean())
        nearest = cosines[:, 1:].max(axis=1).astype(np.float32)
        for row, cosine in zip(rows, nearest.tolist(), strict=True):
            row["negative_similarity"] = float(f"{cosine:.7g}")
    return TaskResults(
        metrics=metrics,
        predictions=[{"line": line, **row} for line, row in zip(lines, rows, strict=True)],
    )

"""What the page of an evaluation shows of sentence embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.data.tables.tables import Table
from bert_tf.tasks.base.report_sections import PlotSection, Section, spread_points
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.similarity.task import SimilarityTask


def sections(
    task: SimilarityTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    """Of scored pairs, the cosine against the score; of others nothing but what every task has."""
    if task.label_column is None:
        return
    scores = np.array([row["label"] for row in results.predictions], np.float64)
    drawn = spread_points(len(scores))
    shown = f"{len(drawn):,} of {len(scores):,} rows. " if len(drawn) < len(scores) else ""
    yield PlotSection(
        title="Similarities",
        x_title="score",
        y_title="cosine",
        x=scores[drawn],
        y=np.asarray(predicted["predicted_similarity"], np.float64)[drawn],
        note=f"{shown}Only the order counts for `spearman`, not the scale of the scores.",
    )

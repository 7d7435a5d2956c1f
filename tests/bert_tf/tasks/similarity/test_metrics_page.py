"""The sections of an evaluation's page."""

import numpy as np
import pytest

from bert_tf.data.tables.tables import Table
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.registry import page_function
from bert_tf.tasks.similarity.metrics import scored_results


class Task:
    label_column = "score"


class Matching:
    label_column = None


@pytest.fixture
def table():
    return Table(source="pairs.csv", columns={"a": ["x"] * 1500}, lines=[*range(1500)], rejects=[])


def test_scored_pairs_are_drawn_by_score_and_cosine(table):
    scores = np.arange(1500) / 300
    predicted = {"predicted_similarity": np.cos(scores).astype(np.float32)}
    results = scored_results(table.lines, scores, predicted, scale=20.0)
    (plot,) = page_function("similarity")(Task(), table, predicted, results)
    assert len(plot.x) <= 1000 and plot.note.startswith(f"{len(plot.x):,} of 1,500 rows. ")
    np.testing.assert_allclose(plot.y, np.cos(plot.x), atol=1e-6)


def test_pairs_without_scores_have_no_plot(table):
    results = TaskResults(metrics={}, predictions=[])
    assert list(page_function("similarity")(Matching(), table, {}, results)) == []

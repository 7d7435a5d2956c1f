"""The sections of an evaluation's page."""

import dataclasses
import types

import numpy as np
import pytest

from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.registry import page_function
from bert_tf.tasks.similarity.metrics import matched_results, pair_predictions, scored_results


@dataclasses.dataclass
class Task:
    """The members of a task that a page uses."""

    label_column: str | None
    columns: types.SimpleNamespace

    def texts(self, source):
        return {name: source.columns[name] for name in self.columns.texts}


SCORED = Task("score", types.SimpleNamespace(texts=("a", "b")))
MATCHED = Task(None, types.SimpleNamespace(texts=("anchor", "positive")))


def titled(sections):
    return {section.title: section for section in sections}


@pytest.fixture
def table():
    texts = [f"text {number}" for number in range(1500)]
    columns = {"a": texts, "b": texts}
    return Table(source="pairs.csv", columns=columns, lines=[*range(1500)], rejects=[])


def test_scored_pairs_are_drawn_by_score_and_cosine(table):
    scores = np.arange(1500) / 300
    predicted = {"predicted_similarity": np.cos(scores).astype(np.float32)}
    results = scored_results(table, scores, predicted, scale=20.0)
    plot = titled(page_function("similarity")(SCORED, table, predicted, results))["Similarities"]
    assert len(plot.x) <= 1000 and plot.note.startswith(f"{len(plot.x):,} of 1,500 rows. ")
    np.testing.assert_allclose(plot.y, np.cos(plot.x), atol=1e-6)


def test_the_most_wrong_pairs_are_farthest_from_their_place(table):
    scores = np.arange(1500) / 300
    cosines = scores / 10
    cosines[3] = 0.9  # alike for the model only
    results = scored_results(table, scores, {"predicted_similarity": cosines}, scale=20.0)
    sections = page_function("similarity")(
        SCORED, table, {"predicted_similarity": cosines}, results
    )
    first, *others = titled(sections)["Most wrong pairs"].examples
    assert not others, "pairs that are moved by one place are in order"
    assert first.line == 3 and first.facts["the model finds them"] == "too alike"
    assert (first.facts["place by score"], first.facts["place by cosine"]) == ("0%", "100%")


def test_a_lost_match_is_shown_with_the_text_that_is_nearest_instead():
    columns = {"anchor": ["a", "b", "c"], "positive": ["A", "B", "C"]}
    table = Table(source="pairs.csv", columns=columns, lines=[2, 3, 4], rejects=[])
    anchors = np.eye(3, dtype=np.float32)
    positives = np.array([[1, 0, 0], [0.9, 0.1, 0], [0, 0, 1]], np.float32)
    ids = np.array([[0, 3], [1, 4], [2, 5]])
    predicted = pair_predictions(anchors, positives)
    vectors = np.stack([anchors, positives], axis=1)
    results = matched_results(table, vectors, ids, predicted, scale=1.0)
    ranks = [row["rank"] for row in results.predictions]
    found = titled(page_function("similarity")(MATCHED, table, predicted, results))
    rows = {row[0]: row[1] for row in found["Where the match is found"].rows}
    assert rows.get("1", 0) == ranks.count(1)
    lost = found["Lost matches"].examples
    assert [example.line for example in lost] == [
        line for line, rank in zip(table.lines, ranks, strict=True) if rank > 1
    ]
    for example in lost:
        assert example.texts["nearest instead"] != example.texts["positive"]

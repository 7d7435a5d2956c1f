"""What the page of scored files says of all of them."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from bert_tf.tasks.base.prediction_rows import Abstention
from pipeline.report.rows.scored_page import page_of_scores
from pipeline.scoring.join import ScoringCounts
from pipeline.scoring.parts import Fact

FAR = "a text farther from the training rows (2, beyond 1.5) than 0.99 of the evaluation rows"


@pytest.mark.parametrize(
    ("below", "beyond", "expected"),
    [
        (0.8, None, "3 predictions left out, of rows with a probability below 0.8."),
        (0.0, 1.5, f"3 predictions left out, of rows with {FAR}."),
        (0.8, 1.5, f"3 predictions left out, of rows with a probability below 0.8, or {FAR}."),
        (None, None, ""),
    ],
)
def test_the_page_says_why_predictions_are_left_out(below, beyond, expected):
    abstention = None
    if below is not None:
        abstention = Abstention(fields=("label", "score"), below=below, beyond=beyond)
    share = None if beyond is None else 0.99
    config = SimpleNamespace(output="scored.csv", model="model", abstain_far=share)
    plan = SimpleNamespace(tables=(), explains=False, marked=None, abstention=abstention)
    sums = Counter({Fact.ABSTAINED: 3, Fact.FAR: 2})
    counts = ScoringCounts(rows_in=9, rows_out=9, rejected={}, types={}, sums=sums)
    page = page_of_scores(config, plan, counts, {}, {})
    assert expected in page
    assert ("left out" in page) == bool(expected)

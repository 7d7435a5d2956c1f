"""Metrics and predictions of answered questions."""

import types

import numpy as np
import pytest

from bert_tf.data.tables.places import Places
from bert_tf.tasks.question_answering.metrics import question_results


@pytest.mark.parametrize(("lines", "shown"), [([1, 1], None), ([3, 7], [3, 7]), ([1], [1])])
def test_lines_are_given_where_they_tell_rows_apart(lines, shown):
    """SQuAD JSON as it is published is a single line."""
    rows = len(lines)
    source = types.SimpleNamespace(
        ids=["a", "b"][:rows],
        lines=lines,
        places=Places(),
        golds=[["Rome"]] * rows,
        answers=[("Rome",)] * rows,
    )
    predicted = {
        "predicted_answer": ["Rome"] * rows,
        **{
            name: np.zeros(rows) for name in ("predicted_start", "predicted_end", "predicted_score")
        },
        "predicted_null_odds": np.zeros(rows),
        "predicted_nbest": [[]] * rows,
    }
    found = question_results(source, predicted, null_threshold=None)
    assert found.metrics["exact_match"] == 100.0
    assert [row["id"] for row in found.predictions] == source.ids
    assert [row.get("line") for row in found.predictions] == (shown or [None] * rows)

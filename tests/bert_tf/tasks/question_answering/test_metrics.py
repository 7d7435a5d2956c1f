"""Exact match and F1 as the official SQuAD scripts define them."""

from __future__ import annotations

import types

import numpy as np
import pytest

from bert_tf.data.tables.places import Places
from bert_tf.tasks.question_answering.metrics import (
    answer_metrics,
    exact_match,
    normalize_answer,
    question_results,
    token_f1,
)


def test_normalized_answers():
    assert normalize_answer(" The  U.S.A., an Anthem-a ") == "usa anthema"
    assert normalize_answer("a") == ""
    assert normalize_answer("Ünïcode—dash") == "ünïcode—dash"


@pytest.mark.parametrize(
    ("predicted", "gold", "exact", "f1"),
    [
        ("the China", "China.", 1.0, 1.0),
        ("in China", "China", 0.0, 2 / 3),
        ("a b b", "b b c", 0.0, 0.8),
        ("x x y z", "x", 0.0, 0.4),
        ("Peru", "China", 0.0, 0.0),
    ],
)
def test_one_answer(predicted, gold, exact, f1):
    assert exact_match(predicted, gold) == exact
    assert token_f1(predicted, gold, version_2=False) == pytest.approx(f1)
    assert token_f1(predicted, gold, version_2=True) == pytest.approx(f1)


def test_answers_without_words_differ_by_version():
    assert token_f1("the", "a", version_2=False) == 0.0
    assert token_f1("the", "a", version_2=True) == 1.0
    assert token_f1("x", "a", version_2=True) == 0.0


def test_the_best_gold_counts():
    assert answer_metrics(
        ["China", "a city"], [["Peru", "in China"], ["city", "town"]], version_2=False
    ) == {"exact_match": 50.0, "f1": pytest.approx(100 * (2 / 3 + 1) / 2)}


def test_questions_without_an_answer():
    metrics = answer_metrics(["", "x", "China", ""], [[], [], ["China"], ["Peru"]], version_2=True)
    assert metrics == {
        "exact_match": 50.0,
        "f1": 50.0,
        "exact_match_answerable": 50.0,
        "f1_answerable": 50.0,
        "exact_match_unanswerable": 50.0,
        "f1_unanswerable": 50.0,
    }


# Metrics and predictions of answered questions.


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

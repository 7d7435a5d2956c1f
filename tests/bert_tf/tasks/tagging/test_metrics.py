"""Metrics of tags against seqeval's, and by their definition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from bert_tf.tasks.tagging.metrics import TaggingScores
from bert_tf.tasks.tagging.words import TaggedWords, TextWords

GOLDEN = Path(__file__).parents[3] / "golden" / "entity_metrics.json"
CASES = json.loads(GOLDEN.read_text())
POS = ["NN", "VB", "DT", "."]


def scored(gold, predicted, scheme):
    """Measures tags of rows of words."""
    words = TextWords.of_rows([["x"] * len(row) for row in gold])
    found = (
        TaggedWords.gold(words, [tag for row in rows for tag in row]) for rows in (gold, predicted)
    )
    return TaggingScores(*found, scheme)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["scheme"])
def test_entity_metrics_are_those_of_seqeval(case):
    gold, predicted = ([row.split() for row in case[name]] for name in ("gold", "predicted"))
    found = scored(gold, predicted, case["scheme"]).metrics()
    assert found == pytest.approx(case["expected"], abs=1e-12)


@given(st.lists(st.tuples(st.sampled_from(POS), st.sampled_from(POS)), min_size=1, max_size=30))
def test_metrics_of_plain_tags_are_those_of_scikit_learn(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    found = scored([gold], [predicted], "plain").metrics()
    assert found["f1"] == pytest.approx(accuracy_score(gold, predicted))
    assert found["accuracy"] == found["f1"] == found["precision"] == found["recall"]
    assert found["macro_f1"] == pytest.approx(f1_score(gold, predicted, average="macro"))
    assert "strict_f1" not in found


@pytest.mark.parametrize("scheme", ["bio", "plain"])
def test_without_entities_and_without_words_everything_is_defined(scheme):
    nothing = scored([], [], scheme).metrics()
    outside = scored([["O", "O"]], [["O", "O"]], scheme).metrics()
    assert nothing["f1"] == nothing["accuracy"] == outside["f1"] == outside["macro_f1"] == 0.0
    assert outside["accuracy"] == 1.0


def test_the_report_has_each_label():
    gold = ["B-per", "O", "B-loc", "I-loc", "B-per"]
    predicted = ["B-per", "B-org", "B-loc", "O", "B-per"]
    report = scored([gold], [predicted], "bio").report()
    assert report.details == {
        "labels": {
            "loc": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1},
            "org": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0},
            "per": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 2},
        }
    }
    assert report.lines[0].split() == ["label", "precision", "recall", "f1", "support"]
    assert report.lines[3].split() == ["per", "1.0000", "1.0000", "1.0000", "2"]

"""The sections of a page on entities."""

import types

import numpy as np
import pytest

from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.prediction_rows import TaskReport, TaskResults
from bert_tf.tasks.registry import page_function
from bert_tf.tasks.tagging.page import Span, judge_entities

TEXTS = ["Anna Lee met Ben in Rome", "Rome and Oslo", "none"]
GOLD = [
    [(0, 8, "PER"), (13, 16, "PER"), (20, 24, "LOC")],
    [(0, 4, "LOC"), (9, 13, "LOC")],
    [],
]
FOUND = [
    [(0, 4, "PER"), (13, 16, "LOC"), (20, 24, "LOC")],
    [(5, 8, "PER")],
    [],
]


def rows_of(spans):
    return [
        [{"start": start, "end": end, "label": label} for start, end, label in row] for row in spans
    ]


@pytest.fixture
def sections():
    predictions = [
        {"entities": gold, "predicted_entities": found}
        for gold, found in zip(rows_of(GOLD), rows_of(FOUND), strict=True)
    ]
    source = types.SimpleNamespace(texts=TEXTS, all_places=[Place(line) for line in (1, 2, 3)])
    results = TaskResults(
        metrics={}, predictions=predictions, report=TaskReport(details={"labels": {}})
    )
    return {
        section.title: section for section in page_function("tagging")(None, source, {}, results)
    }


def test_every_entity_is_judged_once_and_every_prediction_too():
    gold, found = ([{Span(*each) for each in row} for row in spans] for spans in (GOLD, FOUND))
    judged = judge_entities(gold, found)
    for place, spans in (("gold", GOLD), ("predicted", FOUND)):
        known = [
            (each.row, *getattr(each, place)) for each in judged if getattr(each, place) is not None
        ]
        expected = [(row, *span) for row, of_row in enumerate(spans) for span in of_row]
        assert sorted(known) == sorted(expected)


def test_errors_are_counted_by_kind_and_by_type(sections):
    rows = {row[0]: row[1] for row in sections["Errors"].rows}
    assert rows == {
        "right": 1, "not found": 2, "other type": 1, "other bounds": 1, "no entity there": 1
    }  # fmt: skip
    types = sections["Types"]
    assert types.rows == types.columns == ["LOC", "PER", "nothing"]
    np.testing.assert_array_equal(types.counts, [[1, 0, 2], [1, 1, 0], [0, 1, 0]])


def test_entities_are_found_by_their_number_of_words(sections):
    rows = {row[0]: row[1:3] for row in sections["By length of the entity"].rows}
    assert rows == {"1": [4, 0.25], "2": [1, 0.0]}


def test_the_worst_rows_have_their_entities_marked(sections):
    # An entity with other bounds is one error, not two.
    most, first = sections["Most wrong rows"].examples
    marks = {(mark.start, mark.end, mark.kind) for mark in first.marks["text"]}
    assert first.line == 1 and marks == {
        (0, 8, "missed"), (0, 4, "wrong"), (13, 16, "missed"), (13, 16, "wrong"), (20, 24, "right")
    }  # fmt: skip
    assert most.line == 2


def test_pages_without_any_entity_have_no_tables_of_them():
    results = TaskResults(
        metrics={},
        predictions=[{"entities": [], "predicted_entities": []}],
        report=TaskReport(details={"labels": {}}),
    )
    source = types.SimpleNamespace(texts=["none"], all_places=[Place(1)])
    titles = [each.title for each in page_function("tagging")(None, source, {}, results)]
    assert titles == ["Labels", "By length", "Most wrong rows"]

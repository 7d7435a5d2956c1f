"""Ceilings that are told, warned about or an error, and the columns that are stored."""

import io

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.tasks.base.ceiling import Cause
from bert_tf.tasks.registry import TASKS
from bert_tf.tasks.running.ceiling import Ceiling, stored_columns

CAUSE = Cause(count=1, total=40, text="is odd", remedy="be even")


def ceiling(value, *causes):
    return Ceiling(
        source="f.csv",
        rows=40,
        rows_of_file=40,
        metric="accuracy",
        metrics={"accuracy": value},
        perfect=1.0,
        causes=causes or (CAUSE,),
        example=7,
    )


def said(found, **values):
    log = io.StringIO()
    found.report(Console(log), 0.5, **values)
    return log.getvalue()


def test_ordinary_noise_is_a_line_more_is_a_warning_and_below_half_is_an_error():
    assert said(ceiling(1.0)) == said(ceiling(0.996)) == ""
    line = "f.csv: accuracy can reach 0.98 at best: 1 of 40 rows is odd; be even"
    assert said(ceiling(0.98)) == f"{line}\n"
    assert said(ceiling(0.8)).startswith("warning: f.csv: accuracy can reach 0.80 at best: ")
    with pytest.raises(InputError, match=r"reach 0.49 .*; be even \(--min-ceiling 0 continues"):
        said(ceiling(0.49))
    option = Cause(count=40, total=40, text="is cut", remedy="raise --x", is_setting=True)
    with pytest.raises(UsageError, match="40 of 40 rows are cut, 1 of 40 rows is odd; raise --x"):
        said(ceiling(0.1, option, CAUSE))
    ceiling(0.1).report(Console(io.StringIO()), 0.0)
    assert "; fine-tune again: raise --x" in said(ceiling(0.7, option), is_trained=True)


def test_a_ceiling_without_a_known_cause_names_a_row():
    found = ceiling(0.9)
    assert "first at line 7" in Ceiling(**{**vars(found), "causes": ()}).sentence()


def test_stored_columns_are_as_predictions_jsonl_keeps_them():
    declared = TASKS["qa"].predictions
    predicted = {
        "predicted_answer": ["é", ""],
        "predicted_start": np.array([3, -1], np.int32),
        "predicted_end": np.array([4, -1], np.int32),
        "predicted_score": np.array([0.12345678, 1.0]),
        "predicted_null_odds": np.array([1 / 3, np.inf], np.float32),
        "predicted_nbest": ['[{"text": "é"}]', "[]"],
        "other": [1, 2],
    }
    assert stored_columns(declared, predicted) == {
        "predicted_answer": ["é", ""],
        "predicted_start": [3, -1],
        "predicted_end": [4, -1],
        "predicted_score": [0.123457, 1.0],
        "predicted_null_odds": [0.3333333, np.inf],
        "predicted_nbest": [[{"text": "é"}], []],
        "other": [1, 2],
    }

"""How many rejected rows are too many."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig, ScoreConfig, VocabConfig
from bert_tf.tasks.registry import finetune_config
from pipeline.outputs.rejects import RejectLimit, excess_of


@pytest.mark.parametrize(
    ("text", "most_of_100", "most_of_3"),
    [
        ("0", 0, 0),
        ("1", 1, 1),
        ("10", 10, 3),
        ("0.1", 10, 0),
        (".1", 10, 0),
        ("10%", 10, 0),
        (" 33.4 % ", 33, 1),
        ("0.0", 0, 0),
        ("1.0", 100, 3),
        ("1.", 100, 3),
        ("100%", 100, 3),
        (str(0.00001), 0, 0),
        ("1e-2", 1, 0),
    ],
)
def test_numbers_fractions_and_percentages(text, most_of_100, most_of_3):
    limit = RejectLimit.parse(text)
    for rows, most in ((100, most_of_100), (3, most_of_3)):
        allowed = [n for n in range(rows + 1) if not limit.is_exceeded(n, rows)]
        assert allowed == list(range(most + 1))


@pytest.mark.parametrize(
    "text", ["-1", "1.5", "101%", "ten", "", "1e3", "%", ".", "0,1", "٣", "nan"]
)
def test_other_limits_are_refused(text):
    with pytest.raises(ValueError, match=r"a number of rows \(10\) or a fraction"):
        RejectLimit.parse(text)


@given(percent=st.integers(0, 100), rows=st.integers(1, 10**6))
def test_a_fraction_is_exact(percent, rows):
    most = rows * percent // 100
    for text in (f"{percent}%", str(Decimal(percent).scaleb(-2))):
        if "." not in text and "%" not in text:
            continue  # `1` and `0` are numbers of rows
        limit = RejectLimit.parse(text)
        assert not limit.is_exceeded(most, rows)
        assert limit.is_exceeded(most + 1, rows)


KEYS = {"task": "classification", "train": "a.csv", "init": "m", "output": "run"}


def test_rows_that_are_held_out_count_as_rows_of_their_file():
    counts = {
        "train": {"rows_in": 87, "rows_rejected": 10},
        "eval": {"rows_in": 13, "rows_rejected": 0},
    }
    config = finetune_config(KEYS)
    assert excess_of(RejectLimit.parse("10%"), config, counts) is None
    assert excess_of(RejectLimit.parse("9%"), config, counts).startswith("a.csv: 10 of 100 rows")


def test_training_and_evaluation_rows_are_looked_at_apart():
    config = finetune_config({**KEYS, "eval": "b.csv"})
    counts = {
        "rows_in": 110,
        "rejected": {"empty": 5},
        "train": {"rows_in": 100, "rows_rejected": 0},
        "eval": {"rows_in": 10, "rows_rejected": 5},
    }
    assert excess_of(RejectLimit.parse("10%"), config, counts) == (
        "b.csv: 5 of 10 rows rejected, more than --max-rejects 10% allows; the reasons: "
        "run.rejects.jsonl"
    )
    assert excess_of(RejectLimit.parse("50%"), config, counts) is None


def test_rows_of_a_corpus_are_its_documents_whatever_became_of_them():
    config = build_section(VocabConfig, {"input": ["a.txt", "b/*"], "output": "v.txt"})
    counts = {"documents": 80, "dropped": {"blank line": 10}, "rejected": {"not JSON": 10}}
    assert excess_of(RejectLimit.parse("10%"), config, counts) is None
    assert excess_of(RejectLimit.parse("9%"), config, counts).startswith("a.txt, b/*: 10 of 100")


def test_all_scored_tables_count_together():
    config = build_section(ScoreConfig, {"model": "m", "input": ["a.csv"], "output": "s.csv"})
    counts = {"rows_in": 4, "rows_rejected": 2, "rejected": {"empty": 1, "invalid UTF-8": 1}}
    assert excess_of(RejectLimit.parse("2"), config, counts) is None
    assert "2 of 4 rows rejected" in excess_of(RejectLimit.parse("1"), config, counts)


def test_a_job_without_rows_has_none_to_reject():
    config = build_section(ExportConfig, {"run": "r", "output": "out"})
    assert excess_of(RejectLimit.parse("0"), config, {}) is None

"""Which labels are numbers, and what is learned of them."""

import io

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.data.tables.tables import Table
from bert_tf.tasks.regression.targets import (
    mean_and_deviation,
    reject_other_labels,
    warn_of_one_number,
)


def table_of(labels):
    return Table(
        source="t.csv",
        columns={"text": ["x"] * len(labels), "stars": list(labels)},
        lines=list(range(2, 2 + len(labels))),
        rejects=[],
    )


@pytest.mark.parametrize(
    "label", ["3", "-2.5", "+.5", "4.", " 7 ", "1e3", "1E-30", "0", "-0.0", "3.4e38", "1e-400"]
)
def test_numbers(label):
    assert reject_other_labels(table_of([label]), "stars").columns["stars"] == [label]


@pytest.mark.parametrize(
    "label",
    ["nan", "inf", "-Infinity", "3,5", "1_000", "five", "true", "0x1", "1e39", "1e400", "٣", "- 3"],
)
def test_what_is_no_finite_number_of_float32_is_rejected_with_its_line(label):
    kept = reject_other_labels(table_of(["1", label, "2"]), "stars")
    assert kept.columns["stars"] == ["1", "2"]
    assert [str(reject) for reject in kept.rejects] == [
        f"t.csv:3: label is not a finite number ({label!r})"
    ]
    with pytest.raises(InputError, match=r"'stars' holds no number .* t\.csv:2: .*--label-column"):
        reject_other_labels(table_of([label]), "stars")


def test_mean_and_population_deviation():
    numbers = np.array([0.0, 5.0, 2.5, 1.0])
    assert mean_and_deviation(numbers, "t", "c") == (np.mean(numbers), np.std(numbers))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([3.0, 3.0], r"t: column 'c' holds 3 in every row; regression needs numbers that differ"),
        ([3.0], "holds 3 in every row"),
        ([1.6e9, 1.6e9 + 60], r"deviate by 30 from their mean 1\.6e\+09, less than float32 can"),
    ],
)
def test_numbers_that_do_not_differ_are_refused(numbers, message):
    with pytest.raises(InputError, match=message):
        mean_and_deviation(np.array(numbers), "t", "c")


def test_years_differ_enough():
    assert mean_and_deviation(np.array([2001.0, 2003.0]), "t", "c") == (2002.0, 1.0)


def test_evaluation_rows_of_one_number_are_worth_a_warning():
    stream = io.StringIO()
    warn_of_one_number(np.array([1.0, 2.0]), "t", "c", Console(stream))
    assert stream.getvalue() == ""
    warn_of_one_number(np.array([2.0, 2.0]), "t", "c", Console(stream))
    assert "t: column 'c' holds 2 in every row, so correlations" in stream.getvalue()

"""What is learned of labels that are numbers."""

import io

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.tasks.regression.metrics import (
    mean_and_deviation,
    missing_number,
    warn_of_one_number,
)


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


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([-999, 0, 1, 2, 5, -999], -999),
        ([0, 99, 1, 2, 3, 99], 99),
        ([-1, 0.2, 0.3, 0.4, -1], -1),
        ([-1, 0, 1, 2, 3, -1], None),
        ([-999, 0, 1, 2, 5], None),
        ([1000, 0, 1, 2, 1000], None),
        ([9, 9, 8, 7, 5, 1], None),
        ([1, 1, 2], None),
    ],
)
def test_numbers_that_stand_for_missing_ones(numbers, expected):
    assert missing_number(np.array(numbers, float)) == expected

"""Cells that stay as they are where formulas are escaped."""

import itertools
import re

import pytest
from behavior.timing import superlinear_growth

from pipeline.scoring import output_rows
from pipeline.scoring.output_rows import escaped

# Says plainly what a number is, and takes time with the square of a cell.
PLAIN = re.compile(r"[+-]?[\d.,]*\d[\d.,]*(e[+-]?\d+)?%?", re.ASCII | re.IGNORECASE)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("=1+2", "'=1+2"),
        ("-3.5", "-3.5"),
        ("+1,000.50%", "+1,000.50%"),
        ("-2E-3", "-2E-3"),
        ("-.,", "'-.,"),
        ("-1e", "'-1e"),
        ("@name", "'@name"),
        ("plain", "plain"),
    ],
)
def test_numbers_stay_and_formulas_are_escaped(cell, expected):
    assert escaped(cell) == expected


def test_what_a_number_is():
    for length in range(7):
        for characters in itertools.product("-1.,e%", repeat=length):
            cell = "".join(characters)
            is_number = PLAIN.fullmatch(cell) is not None
            assert (output_rows._NUMBER.fullmatch(cell) is not None) == is_number, cell


@pytest.mark.parametrize("unit", ["1", ".", ",", "1,", "1.e"])
def test_a_long_cell_costs_no_more_than_its_length(unit):
    def made(size):
        return "-" + unit * (size // len(unit)) + "x"

    assert escaped(made(1_000_000)) == f"'{made(1_000_000)}"
    assert superlinear_growth(escaped, made, size=100_000) is None

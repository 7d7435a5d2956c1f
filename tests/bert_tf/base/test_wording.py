"""Counts agree with their nouns, and numbers are shown as they are."""

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.wording import (
    NO_RATES,
    Rates,
    printable,
    quantity,
    shown_duration,
    shown_number,
    shown_setting,
    shown_size,
)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "row", "0 rows"),
        (1, "rejected row", "1 rejected row"),
        (1200, "row", "1,200 rows"),
        (2, "entry", "2 entries"),
        (2, "day", "2 days"),
        (2, "batch", "2 batches"),
        (1, "entry", "1 entry"),
    ],
)
def test_nouns_agree_with_their_numbers(number, noun, text):
    assert quantity(number, noun) == text


def test_an_irregular_plural_is_given():
    assert quantity(2, "piece of text", "pieces of text") == "2 pieces of text"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e-5, "5e-05"),
        (1e-12, "1e-12"),
        (0.1, "0.1"),
        (0.0, "0.0"),
        (100.0, "100.0"),
        (0.91234567, "0.9123"),
        (6.43123456, "6.4312"),
        (12345.678, "12,345.678"),
        (12345, "12,345"),
        (True, "True"),
        (float("nan"), "nan"),
        ("lamb", "lamb"),
    ],
)
def test_numbers_to_read(value, text):
    assert shown_number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_a_shown_number_is_near_its_value_and_zero_only_for_zero(value):
    shown = float(shown_number(value).replace(",", ""))
    assert math.isclose(shown, value, rel_tol=5.1e-4, abs_tol=0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(5e-5, "5e-05"), (10_000, "10000"), (False, "no"), (("html", "nfc"), "[html, nfc]")],
)
def test_settings_can_be_typed_again(value, text):
    assert shown_setting(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1 byte"), (812, "812 bytes"), (21_400, "21.4 kB"), (1_204_000_000, "1,204.0 MB")],
)
def test_sizes(number, text):
    assert shown_size(number) == text


def test_durations_have_hours_minutes_and_seconds():
    times = {-3.0: "0:00:00", 0.4: "0:00:00", 59.6: "0:01:00", 3725.0: "1:02:05", 9e5: "250:00:00"}
    assert {seconds: shown_duration(seconds) for seconds in times} == times


@given(st.text())
def test_no_text_commands_a_terminal(text):
    shown = printable(text)
    assert [
        each for each in shown if unicodedata.category(each) == "Cc" and each not in "\n\t"
    ] == []
    assert shown == text or any(unicodedata.category(each) == "Cc" for each in text)


def test_control_characters_are_shown_as_python_writes_them():
    assert printable("a\x1b[2J\x9b\r\n\tb") == "a\\x1b[2J\\x9b\\x0d\n\tb"


# Costs of a time, as far as price and power are known.


@pytest.mark.parametrize(
    ("rates", "seconds", "shown"),
    [
        (Rates(2.5, 200.0), 1800, "cost 1.25, 0.1 kWh"),
        (Rates(2.5, 0.0), 3600 * 1000, "cost 2,500.00"),
        (Rates(0.0, 350.0), 3600 * 10, "3.50 kWh"),
        (Rates(0.02, 0.0), 60, "cost 0.00033"),
        (Rates(2.5, 200.0), -1, ""),
        (NO_RATES, 1800, ""),
    ],
)
def test_costs_are_shown_as_far_as_known(rates, seconds, shown):
    assert rates.shown(seconds) == shown


def test_figures_have_what_is_known():
    assert Rates(2.5, 200.0).figures(7200) == {"cost": 5.0, "kwh": 0.4}
    assert NO_RATES.figures(7200) == {}

"""Costs of a time, as far as price and power are known."""

import pytest

from bert_tf.base.wording import NO_RATES, Rates


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

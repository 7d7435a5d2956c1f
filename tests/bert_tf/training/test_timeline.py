import numpy as np
import pytest

from bert_tf.training.timeline import make_schedule

STEPS = 100
WARMUP = 10
PEAK = 3e-4
STEP = np.arange(STEPS + 1)


def huggingface(name, step):
    """`transformers/optimization.py`: the lambdas of get_*_schedule_with_warmup."""
    if step < WARMUP:
        return step / max(1, WARMUP)
    done = (step - WARMUP) / max(1, STEPS - WARMUP)
    return {
        "linear": max(0.0, (STEPS - step) / max(1, STEPS - WARMUP)),
        "constant": 1.0,
        "cosine": max(0.0, 0.5 * (1.0 + np.cos(np.pi * 0.5 * 2.0 * done))),
        "polynomial": (1 - done) ** 0.5,
    }[name]


@pytest.mark.parametrize("name", ["linear", "constant", "cosine", "polynomial"])
def test_values_are_those_of_huggingface(name):
    rates = make_schedule(name, peak=PEAK, warmup_fraction=WARMUP / STEPS)(STEP / STEPS)
    np.testing.assert_allclose(rates, [PEAK * huggingface(name, step) for step in STEP], atol=1e-12)


def test_without_warmup_the_first_step_has_the_peak():
    assert make_schedule("linear", peak=PEAK, warmup_fraction=0.0)(np.array([0.0]))[0] == PEAK


def test_nothing_but_warmup_ends_at_the_peak():
    rates = make_schedule("linear", peak=PEAK, warmup_fraction=1.0)(np.array([0.5, 0.999]))
    np.testing.assert_allclose(rates, [0.5 * PEAK, 0.999 * PEAK])


def test_progress_beyond_the_end_stays_at_the_end():
    assert make_schedule("linear", peak=PEAK, warmup_fraction=0.1)(np.array([1.7]))[0] == 0.0


def test_trapezoidal_is_warmup_plateau_and_linear_cooldown():
    """`get_wsd_schedule` of transformers with linear warmup and decay, step by step."""
    rates = make_schedule(
        "trapezoidal", peak=PEAK, warmup_fraction=WARMUP / STEPS, cooldown_fraction=0.2
    )(STEP / STEPS)
    expected = np.minimum(1.0, np.minimum(STEP / WARMUP, (STEPS - STEP) / 20))
    np.testing.assert_allclose(rates, PEAK * expected, atol=1e-12)


@pytest.mark.parametrize(("cooldown", "expected"), [(0.0, [1.0, 1.0, 1.0]), (0.9, [1.0, 0.5, 0.0])])
def test_trapezoidal_cools_down_over_no_more_than_is_left(cooldown, expected):
    schedule = make_schedule(
        "trapezoidal", peak=1.0, warmup_fraction=0.5, cooldown_fraction=cooldown
    )
    np.testing.assert_allclose(schedule(np.array([0.5, 0.75, 1.0])), expected)

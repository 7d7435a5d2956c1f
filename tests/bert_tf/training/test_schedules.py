import numpy as np
import pytest

from bert_tf.training.schedules import make_schedule

STEPS, WARMUP, PEAK = 100, 10, 3e-4
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

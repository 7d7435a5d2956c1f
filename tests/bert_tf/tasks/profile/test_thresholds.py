"""Thresholds against counting, and the promise of a chosen one against simulated models."""

import math

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.tasks.profile.thresholds import (
    chance_of,
    choose_threshold,
    threshold_section,
    thresholds_of,
    wilson_interval,
)


def drawn(rows: int, seed: int, *, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities of predictions, and whether they are right."""
    rng = np.random.default_rng(seed)
    score = np.round(0.5 + 0.5 * rng.beta(3 * sharpness, 1.0, rows), 6)
    return score, rng.random(rows) < score


def test_thresholds_are_counts_of_rows_at_or_above_them():
    score, is_right = drawn(500, 0)
    score = np.round(score, 2)  # many ties
    found = thresholds_of(score, is_right)
    assert found[0].coverage == 1.0
    assert [each.below for each in found] == sorted({each.below for each in found})
    for each in found:
        kept = score >= each.below
        assert (each.decided, each.right) == (kept.sum(), is_right[kept].sum())


def test_intervals_and_tails_are_those_of_their_definitions():
    for hits, rows in ((0, 5), (5, 5), (17, 40), (990, 1000)):
        terms = [
            math.comb(rows, count) * 0.9**count * 0.1 ** (rows - count)
            for count in range(hits, rows + 1)
        ]
        assert chance_of(hits, rows, 0.9) == pytest.approx(math.fsum(terms), rel=1e-9)
    # Brown, Cai & DasGupta 2001: the interval holds the shares that a z test does not reject.
    for hits, rows in ((0, 5), (17, 40), (990, 1000)):
        for bound in set(wilson_interval(hits, rows)) - {0.0, 1.0}:
            distance = abs(hits / rows - bound)
            assert distance == pytest.approx(1.959964 * (bound * (1 - bound) / rows) ** 0.5)


def test_the_accuracy_above_a_chosen_threshold_is_as_promised():
    """It may fail for 5% of models; the accuracy of calibrated rows is their probability."""
    missed = 0
    for seed in range(200):
        score, is_right = drawn(600, seed)
        below = choose_threshold(score, is_right, 0.85).below
        others, _ = drawn(4000, 10_000 + seed)
        missed += others[others >= below].mean() < 0.85
    assert missed <= 0.05 * 200


def test_too_few_rows_are_refused_with_the_number_that_would_do():
    score, is_right = np.full(40, 0.99), np.ones(40, bool)
    with pytest.raises(UsageError, match=r"40 evaluation rows are too few .* about 59 would do"):
        choose_threshold(score, is_right, 0.95)
    assert choose_threshold(np.full(59, 0.99), np.ones(59, bool), 0.95).coverage == 1.0


def test_what_no_threshold_reaches_is_refused_with_what_one_does():
    score, is_right = drawn(4000, 3, sharpness=0.2)
    with pytest.raises(UsageError, match=r"4,000 evaluation rows reach 0\.9\d+ at best"):
        choose_threshold(score, is_right, 0.999)


def test_the_page_has_a_row_and_an_interval_for_each_threshold():
    section = threshold_section(*drawn(300, 1))
    assert len(section.x) == len(section.intervals) == len(section.table.rows)
    assert np.all(section.intervals[:, 0] <= section.y)
    assert np.all(section.y <= section.intervals[:, 1])

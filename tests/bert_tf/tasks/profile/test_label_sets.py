"""The promise of label sets on rows that were held out, for good and bad models."""

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.tasks.profile.label_sets import label_sets, rows_needed
from bert_tf.tasks.profile.profile import EvaluatedRows

LABELS = ("a", "b", "c", "d")


def drawn(rows: int, seed: int, shares: list[float], *, skill: float = 2.0):
    """Labels by their shares, and the probabilities of an overconfident model."""
    rng = np.random.default_rng(seed)
    gold = rng.choice(len(LABELS), rows, p=shares)
    logits = rng.normal(size=(rows, len(LABELS))) + 1.5 * np.log(shares)
    logits[np.arange(rows), gold] += skill
    powers = np.exp(1.5 * (logits - logits.max(axis=1, keepdims=True)))
    return gold, powers / powers.sum(axis=1, keepdims=True)


def rows_of(gold, probabilities) -> EvaluatedRows:
    return EvaluatedRows.of(LABELS, gold, probabilities.argmax(axis=1), probabilities)


def is_covered(sets, gold, probabilities) -> np.ndarray:
    found = sets.values({"probabilities": probabilities})
    return np.array([LABELS[label] in each for label, each in zip(gold, found, strict=True)])


SHARES = {"balanced": [0.25] * 4, "imbalanced": [0.8, 0.12, 0.05, 0.03]}


@pytest.mark.parametrize("skill", [0.0, 2.0, 8.0])
@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("seed", range(5))
def test_coverage_is_as_promised_within_its_error(shares, seed, skill):
    sets = label_sets(rows_of(*drawn(1000, seed, shares, skill=skill)), 0.9, by_label=False)
    gold, probabilities = drawn(10_000, 100 + seed, shares, skill=skill)
    covered = is_covered(sets, gold, probabilities).mean()
    assert covered > 0.9 - 4 * 0.0095
    if skill < 8.0:  # with it, more than 90% of the right labels have a probability of 1.000000
        assert covered < 0.9 + 4 * 0.0095
    assert sets.deviation == pytest.approx(0.0095, rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_by_label_the_rows_of_every_label_are_covered(seed):
    shares = SHARES["imbalanced"]
    rows = rows_of(*drawn(4000, seed, shares))
    gold, probabilities = drawn(20_000, 100 + seed, shares)
    together = is_covered(label_sets(rows, 0.9, by_label=False), gold, probabilities)
    assert together[gold == 3].mean() < 0.6, "only rows of the frequent label are covered"
    sets = label_sets(rows, 0.9, by_label=True)
    covered = is_covered(sets, gold, probabilities)
    for label in range(len(LABELS)):
        number = (rows.gold == label).sum()
        error = np.hypot((0.09 / number) ** 0.5, (0.09 / (gold == label).sum()) ** 0.5)
        assert covered[gold == label].mean() == pytest.approx(0.9, abs=4 * error)


def test_the_mean_over_many_small_samples_is_the_exact_one():
    """k / (n + 1): of 19 rows and 0.9, 18 / 20."""
    shares = SHARES["balanced"]
    share = [
        is_covered(
            label_sets(rows_of(*drawn(19, seed, shares)), 0.9, by_label=False),
            *drawn(500, 1000 + seed, shares),
        ).mean()
        for seed in range(150)
    ]
    assert np.mean(share) == pytest.approx(0.9, abs=4 * np.std(share) / 150**0.5)


@pytest.mark.parametrize(("coverage", "needed"), [(0.9, 9), (0.95, 19), (0.99, 99), (0.5, 1)])
def test_too_few_rows_are_refused_with_the_number_needed(coverage, needed):
    assert rows_needed(coverage) == needed
    gold, probabilities = drawn(needed, 0, SHARES["balanced"])
    label_sets(rows_of(gold, probabilities), coverage, by_label=False)
    if needed > 1:
        with pytest.raises(UsageError, match=f"needs {needed} evaluation rows?, and the model has"):
            few = rows_of(gold[1:], probabilities[1:])
            label_sets(few, coverage, by_label=False)


def test_labels_with_too_few_rows_are_named():
    gold = np.array([0] * 9 + [1] * 9 + [2] * 8)
    probabilities = np.full((len(gold), 4), 0.25)
    with pytest.raises(UsageError, match=r"9 evaluation rows of each label; 'c' has 8, 'd' has 0"):
        label_sets(rows_of(gold, probabilities), 0.9, by_label=True)


def test_sets_have_the_likeliest_label_first_and_may_be_empty():
    sets = label_sets(rows_of(np.zeros(20, int), np.full((20, 4), 0.25)), 0.9, by_label=False)
    found = sets.values({"probabilities": np.array([[0.3, 0.1, 0.35, 0.25], [0.24] * 4])})
    assert found == [["c", "a", "d"], []]

"""Bounds of p-values by exact fractions."""

import math
from fractions import Fraction

import numpy as np

from bert_tf.tasks.profile.fisher import chance_of_difference


def exact_chance(new: int, new_rows: int, old: int, old_rows: int) -> float:
    """Twice the smaller tail of the hypergeometric distribution, in whole numbers."""
    both = new + old
    terms = {
        count: math.comb(new_rows, count) * math.comb(old_rows, both - count)
        for count in range(max(0, both - old_rows), min(both, new_rows) + 1)
    }
    tails = (
        sum(term for count, term in terms.items() if count >= new),
        sum(term for count, term in terms.items() if count <= new),
    )
    return min(1.0, float(Fraction(2 * min(tails), math.comb(new_rows + old_rows, both))))


def test_chances_are_those_of_fishers_exact_test_where_they_are_small():
    rng = np.random.default_rng(0)
    old_rows, new_rows = rng.integers(50, 500, (2, 100))
    old, new = (rng.random((2, 100)) * [old_rows, new_rows]).astype(int)
    found = chance_of_difference(new, new_rows, old, old_rows)
    exact = np.array(
        [exact_chance(*row) for row in np.stack([new, new_rows, old, old_rows], 1).tolist()]
    )
    assert np.all(found >= exact * (1 - 1e-6))
    is_small = exact < 1e-4
    assert is_small.sum() > 50
    assert np.all(found[is_small] <= 1.5 * exact[is_small] + 1e-300)

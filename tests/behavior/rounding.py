"""Comparison of two computations of the same numbers, which round differently.

Two graphs, batch shapes, numbers of threads or engines add in different orders, on one processor
and not on the next. So neither equal bits nor a difference once measured may be asked for: the
tolerance follows from the type, the scale of the array and the number of roundings.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

# A rounding is off by up to half of the type's epsilon, evenly spread: 0.29 of it on average, and
# 0.41 in the difference of two computations. Independent roundings grow with the square root of
# their number, so that this is about five standard deviations.
_DEVIATIONS = 2.0


def rounding(dtype: Any, roundings: int) -> float:
    """Return the difference that roundings explain, relative to the scale of the numbers.

    Args:
        dtype: the type whose precision limits the computation, float32 or bfloat16.
        roundings: how many roundings follow one another. In float32 these are the summands of all
            sums of the chain; in bfloat16 its operations, since products add up in float32.
    """
    return _DEVIATIONS * float(ml_dtypes.finfo(np.dtype(dtype)).eps) * roundings**0.5


def assert_same_but_for_rounding(
    found: Any, expected: Any, *, roundings: int, dtype: Any = "float32"
) -> None:
    """Assert that two arrays differ by no more than roundings do.

    Small elements are as exact as the sums that they are left of, so the scale is the largest
    absolute value of the whole array.

    Args:
        found: array of any shape.
        expected: array of the same shape, all finite.
        roundings: see `rounding`.
        dtype: see `rounding`.
    """
    found = np.asarray(found).astype(np.float64)
    expected = np.asarray(expected).astype(np.float64)
    assert np.isfinite(expected).all()
    scale = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=rounding(dtype, roundings) * scale, strict=True
    )

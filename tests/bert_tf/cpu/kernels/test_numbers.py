"""Kernels' numbers against ml_dtypes and SciPy."""

import ml_dtypes
import numba
import numpy as np
import pytest
import scipy.special

from bert_tf.cpu.kernels import SUMMING_KERNEL, numbers

# Of the few operations of a function; where products and sums fuse, there are fewer.
ROUNDINGS = 6 * np.finfo(np.float32).eps


@numba.njit
def rounded(values, outputs):
    for place in range(len(values)):
        outputs[place] = numbers.narrow(values[place], outputs[place])


@numba.njit
def widened(values, outputs):
    for place in range(len(values)):
        outputs[place] = numbers.wide(values[place])


@numba.njit
def there_and_back(values, outputs):
    for place in range(len(values)):
        outputs[place] = numbers.unordered(numbers.ordered(values[place]))


def edge_values():
    """Return random bits, midpoints of bfloat16, infinities and zeros; no NaN."""
    bits = np.random.default_rng(1).integers(0, 2**32, 20_000, np.uint32)
    bits[:5000] = bits[:5000] & 0xFFFF0000 | 0x8000
    values = bits.view(np.float32)
    values = values[~np.isnan(values)]
    return np.append(values, np.array([0.0, -0.0, np.inf, -np.inf, 3.4e38], np.float32))


def test_bfloat16_is_rounded_and_widened_as_by_ml_dtypes():
    values = edge_values()
    bits = np.empty(len(values), np.uint16)
    rounded(values, bits)
    with np.errstate(over="ignore"):
        expected = values.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(bits, expected.view(np.uint16))
    wide = np.empty(len(values), np.float32)
    widened(bits, wide)
    np.testing.assert_array_equal(wide, expected.astype(np.float32))


@pytest.mark.parametrize("value", [np.nan, -np.nan])
def test_nan_stays_nan(value):
    bits = np.zeros(1, np.uint16)
    rounded(np.array([value], np.float32), bits)
    assert np.isnan(bits.view(ml_dtypes.bfloat16)[0])


def test_float32_stays_as_it_is():
    values = edge_values()
    outputs = np.empty_like(values)
    rounded(values, outputs)
    np.testing.assert_array_equal(outputs, values)


def test_whole_numbers_have_the_order_of_float32():
    values = edge_values()
    outputs = np.empty_like(values)
    there_and_back(values, outputs)
    np.testing.assert_array_equal(outputs.view(np.uint32), values.view(np.uint32))

    @numba.njit
    def ordered(values, outputs):
        for place in range(len(values)):
            outputs[place] = numbers.ordered(values[place])

    whole = np.empty(len(values), np.int32)
    ordered(values, whole)
    by_whole = values[np.argsort(whole)]
    assert (by_whole[:-1] <= by_whole[1:]).all()


@pytest.mark.parametrize(
    ("function", "reference", "scale", "tolerance"),
    [
        (numbers.exponential, np.exp, 40.0, {"rtol": ROUNDINGS}),
        (numbers.error_function, scipy.special.erf, 2.0, {"rtol": ROUNDINGS}),
        (numbers.hyperbolic_tangent, np.tanh, 3.0, {"atol": ROUNDINGS}),
    ],
    ids=["exponential", "error_function", "hyperbolic_tangent"],
)
def test_functions_equal_those_of_scipy(function, reference, scale, tolerance):
    @numba.njit(**{**SUMMING_KERNEL, "cache": False})
    def of_all(values, outputs):
        for place in range(len(values)):
            outputs[place] = function(values[place])

    values = np.random.default_rng(2).normal(0, scale, 20_000).astype(np.float32)
    values = np.clip(values, -87, 88)
    outputs = np.empty_like(values)
    of_all(values, outputs)
    np.testing.assert_allclose(outputs, reference(values.astype(np.float64)), **tolerance)
    of_all(np.array([np.nan, -1e30, 1e30], np.float32), outputs)
    assert np.isnan(outputs[0])
    np.testing.assert_allclose(
        outputs[1:3], reference(np.array([-np.inf, 88.0])), rtol=ROUNDINGS, atol=1e-37
    )

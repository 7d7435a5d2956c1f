"""Numbers in kernels: bfloat16 as uint16, and functions in float32 that processors lack.

Kernels compute in float32. Everything here is inlined into their loops, which LLVM then vectorizes.
So there are no branches, and no number is wider than 32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from bert_tf.base.compiled import numba
from bert_tf.cpu.kernels import FUNCTION

# Bounds of exponents: beyond them, results are infinite or subnormal.
_MAX_EXPONENT = np.float32(88.0)
_MIN_EXPONENT = np.float32(-87.0)
_LOG2_E = np.float32(1.44269504)
# Two parts of the logarithm of 2. The first has few bits, so that integers times it are exact.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_ZERO = np.float32(0.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)


def _cast_to(kind: Any) -> Any:
    return lambda _context, builder, _signature, arguments: builder.bitcast(arguments[0], kind)


@intrinsic
def _float_of_bits(_: Any, bits: Any) -> Any:
    return types.float32(types.uint32), _cast_to(ir.FloatType())


@intrinsic
def _bits_of_float(_: Any, value: Any) -> Any:
    return types.uint32(types.float32), _cast_to(ir.IntType(32))


@numba.njit(**FUNCTION)
def ordered(value: Any) -> Any:
    """Convert float32 to int32 in the same order, since only maxima of integers are vectorized."""
    bits = np.int32(_bits_of_float(value))
    return _with_order_turned(bits)


@numba.njit(**FUNCTION)
def unordered(number: Any) -> Any:
    """Invert `ordered`."""
    return _float_of_bits(np.uint32(_with_order_turned(number)))


@numba.njit(**FUNCTION)
def _with_order_turned(bits: Any) -> Any:
    # Numba widens the results of 32-bit operations to 64 bits, so each is converted back.
    sign = np.int32(bits >> np.int32(31))
    return np.int32(bits ^ np.int32(sign & np.int32(0x7FFFFFFF)))


def wide(number):
    """Return the float32 of a number from an array of bfloat16 as uint16, or of float32."""
    raise NotImplementedError("only kernels call this")


@overload(wide, jit_options=FUNCTION)
def _wide(number):
    if number == types.uint16:
        return lambda number: _float_of_bits(np.uint32(number) << np.uint32(16))
    return lambda number: number


def narrow(value, like):
    """Return a float32 as a number of the array of `like`, rounded to nearest, ties to even."""
    raise NotImplementedError("only kernels call this")


@overload(narrow, jit_options=FUNCTION)
def _narrow(value, like):
    if like == types.uint16:

        def rounded(value, like):
            bits = _bits_of_float(value)
            odd = (bits >> np.uint32(16)) & np.uint32(1)
            return np.uint16((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))

        return rounded
    return lambda value, like: value


@numba.njit(**FUNCTION)
def _between(value: Any, least: Any, greatest: Any) -> Any:
    # Comparisons with NaN are false, so NaN passes in this order.
    value = least if value < least else value
    return greatest if value > greatest else value


@numba.njit(**FUNCTION)
def exponential(value: Any) -> Any:
    """Return e to the power of a float32 up to 88, within two units in the last place.

    0 below -87. The algorithm is Cephes' `expf` (Moshier): a power of two times a polynomial.
    """
    exponent = _between(value, _MIN_EXPONENT, _MAX_EXPONENT)
    power = np.floor(exponent * _LOG2_E + _HALF)
    rest = exponent - power * _LN2_HIGH - power * _LN2_LOW
    series = np.float32(1.9875691500e-4)
    series = series * rest + np.float32(1.3981999507e-3)
    series = series * rest + np.float32(8.3334519073e-3)
    series = series * rest + np.float32(4.1665795894e-2)
    series = series * rest + np.float32(1.6666665459e-1)
    series = series * rest + np.float32(5.0000001201e-1)
    scale = _float_of_bits(np.uint32((np.int32(power) + np.int32(127)) << np.int32(23)))
    result = (series * rest * rest + rest + _ONE) * scale
    # The smallest number would make later results subnormal, which is slow in some threads.
    return _ZERO if value < _MIN_EXPONENT else result


@numba.njit(**FUNCTION)
def error_function(value: Any) -> Any:
    """Return erf of a float32, within a few units in the last place.

    A quotient of polynomials, with the coefficients of Eigen's implementation.
    """
    limit = np.float32(3.832506856900711)
    value = _between(value, -limit, limit)
    square = value * value
    above = np.float32(0.00022905065861350646)
    above = above * square + np.float32(0.0034082910107109506)
    above = above * square + np.float32(0.050955695062380861)
    above = above * square + np.float32(0.18520832239976145)
    above = above * square + np.float32(1.128379143519084)
    below = np.float32(-1.1791602954361697e-7)
    below = below * square + np.float32(0.000023547966471313185)
    below = below * square + np.float32(0.0010179625278914885)
    below = below * square + np.float32(0.014070470171167667)
    below = below * square + np.float32(0.11098505178285362)
    below = below * square + np.float32(0.49746925110067538)
    below = below * square + _ONE
    return value * above / below


@numba.njit(**FUNCTION)
def hyperbolic_tangent(value: Any) -> Any:
    """Return tanh of a float32, within 1e-7."""
    return _ONE - np.float32(2.0) / (exponential(value + value) + _ONE)

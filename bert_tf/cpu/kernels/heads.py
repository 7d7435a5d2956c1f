"""Division of queries, keys and values into heads, with bias, and its gradient.

It also pads rows for attention: in one row without padding, `numbers`, int32 [batch, length], are
the numbers of tokens, -1 for padding left out. One pass replaces the sum with the bias, the split,
the transposition, and the gathering of rows.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bert_tf.base.compiled import numba
from bert_tf.cpu.kernels import FUNCTION, KERNEL
from bert_tf.cpu.kernels.native import DONE, ENTRY, MISFIT, RANK, size_of, vector
from bert_tf.cpu.kernels.numbers import narrow, wide


@numba.njit(**KERNEL)
def take_heads(
    projected: np.ndarray, bias: np.ndarray, numbers: np.ndarray, part: int, outputs: np.ndarray
) -> None:
    """Copy the heads of one part, with the bias added; 0 on padding left out.

    Args:
        projected: float32, or bfloat16 as uint16, [tokens, parts, heads, size].
        bias: like `projected`, [parts, heads, size].
        numbers: int32 [batch, length]; empty for padded rows.
        part: number of the part, from 0.
        outputs: like `projected`, [batch, heads, length, size], written to.
    """
    batch, heads, length, size = outputs.shape
    is_padded = numbers.size == 0
    for row in range(batch):
        for head in range(heads):
            added = bias[part, head]
            for place in range(length):
                number = row * length + place if is_padded else numbers[row, place]
                taken = outputs[row, head, place]
                if number < 0:
                    taken[:] = 0
                    continue
                source = projected[number, part, head]
                for index in range(size):
                    taken[index] = narrow(wide(source[index]) + wide(added[index]), source[index])


@numba.njit(**KERNEL)
def take_heads_gradient(
    upstream: np.ndarray,
    numbers: np.ndarray,
    part: int,
    projected_gradient: np.ndarray,
    bias_gradient: np.ndarray,
) -> None:
    """Compute the gradients of one part of `projected` and of the bias.

    Args:
        upstream: gradient of the outputs, like them.
        numbers, part: see `take_heads`.
        projected_gradient: like `projected`, whose part is written to.
        bias_gradient: float32 [heads, size], written to.
    """
    batch, heads, length, size = upstream.shape
    bias_gradient[:] = np.float32(0.0)
    is_padded = numbers.size == 0
    for row in range(batch):
        for head in range(heads):
            summed = bias_gradient[head]
            for place in range(length):
                number = row * length + place if is_padded else numbers[row, place]
                if number < 0:
                    continue
                source = upstream[row, head, place]
                taken = projected_gradient[number, part, head]
                for index in range(size):
                    taken[index] = source[index]
                    summed[index] += wide(source[index])


@functools.cache
def heads_entry(kind: Any, parts: int) -> Any:
    """Return the entry of `take_heads` for all parts.

    Inputs: projected, bias, numbers. Outputs: the parts.

    Args:
        kind: NumPy's type of projected, bias and the parts, uint16 for bfloat16.
        parts: number of queries, keys and values.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        heads = dims[4 * RANK - 3]
        length = dims[4 * RANK - 2]
        size = dims[4 * RANK - 1]
        if dims[RANK - 1] != parts * heads * size or size_of(dims, 1) != dims[RANK - 1]:
            return MISFIT
        places = dims[4 * RANK - 4] * length
        if not _fit(data, dims, 2, size_of(dims, 0) // dims[RANK - 1], places):
            return MISFIT
        projected = vector(data, dims, 0, kind).reshape((-1, parts, heads, size))
        bias = vector(data, dims, 1, kind).reshape((parts, heads, size))
        numbers = vector(data, dims, 2, np.int32).reshape((-1, length))[start:stop]
        if size_of(dims, 2) == 0:
            projected = projected[start * length : stop * length]
        for part in range(parts):
            outputs = vector(data, dims, 3 + part, kind).reshape((-1, heads, length, size))
            take_heads(projected, bias, numbers, part, outputs[start:stop])
        return DONE

    return entry


@functools.cache
def heads_gradient_entry(kind: Any, parts: int) -> Any:
    """Return the entry of `take_heads_gradient` for all parts.

    Inputs: the gradients of the parts, numbers. Outputs: the gradient of projected, and of the bias
    as a sum over rows.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        heads = dims[RANK - 3]
        length = dims[RANK - 2]
        size = dims[RANK - 1]
        tokens = size_of(dims, parts + 1) // (parts * heads * size)
        if not _fit(data, dims, parts, tokens, dims[RANK - 4] * length):
            return MISFIT
        numbers = vector(data, dims, parts, np.int32).reshape((-1, length))[start:stop]
        of_projected = vector(data, dims, parts + 1, kind).reshape((-1, parts, heads, size))
        if size_of(dims, parts) == 0:
            of_projected = of_projected[start * length : stop * length]
        of_bias = vector(data, dims, parts + 2, np.float32).reshape((parts, heads, size))
        for part in range(parts):
            upstream = vector(data, dims, part, kind).reshape((-1, heads, length, size))
            take_heads_gradient(upstream[start:stop], numbers, part, of_projected, of_bias[part])
        return DONE

    return entry


@register_jitable(**FUNCTION)
def _fit(data: Any, dims: Any, number: int, tokens: int, places: int) -> bool:
    """Return whether numbers of tokens fit the shapes.

    There must be one for each place, all of tokens that exist; or none, if all places are tokens.
    """
    numbers = vector(data, dims, number, np.int32)
    if numbers.size == 0:
        return tokens == places
    fits = numbers.size == places
    for place in range(numbers.size):
        fits = fits and numbers[place] < tokens
    return fits

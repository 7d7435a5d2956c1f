"""The bias of queries, keys and values and their division into heads, and its gradient."""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np

from bert_tf.layers.kernels.native import DONE, ENTRY, MISFIT, RANK, size_of, vector
from bert_tf.layers.kernels.numbers import narrow, wide
from bert_tf.layers.kernels.options import KERNEL


@numba.njit(**KERNEL)
def take_heads(projected: np.ndarray, bias: np.ndarray, part: int, outputs: np.ndarray) -> None:
    """The heads of one part, with the bias added.

    Args:
        projected: float32, or bfloat16 as uint16, [batch, length, parts, heads, size].
        bias: like `projected`, [parts, heads, size].
        part: which one of queries, keys and values, from 0.
        outputs: like `projected`, [batch, heads, length, size], written to.
    """
    batch, heads, length, size = outputs.shape
    for row in range(batch):
        for head in range(heads):
            added = bias[part, head]
            for token in range(length):
                given = projected[row, token, part, head]
                taken = outputs[row, head, token]
                for place in range(size):
                    taken[place] = narrow(wide(given[place]) + wide(added[place]), given[place])


@numba.njit(**KERNEL)
def take_heads_gradient(
    upstream: np.ndarray, part: int, projected_gradient: np.ndarray, bias_gradient: np.ndarray
) -> None:
    """The gradients of `take_heads`' arguments.

    Args:
        upstream: of the outputs, like them.
        part: as of `take_heads`.
        projected_gradient: like `projected`, whose part is written to.
        bias_gradient: float32 [heads, size], written to.
    """
    batch, heads, length, size = upstream.shape
    bias_gradient[:] = np.float32(0.0)
    for row in range(batch):
        for head in range(heads):
            summed = bias_gradient[head]
            for token in range(length):
                given = upstream[row, head, token]
                taken = projected_gradient[row, token, part, head]
                for place in range(size):
                    taken[place] = given[place]
                    summed[place] += wide(given[place])


@functools.cache
def heads_entry(kind: Any, parts: int) -> Any:
    """Of projected, bias; the parts.

    Args:
        kind: NumPy's type of their numbers, uint16 for bfloat16.
        parts: how many of queries, keys and values there are.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        heads, length, size = dims[3 * RANK - 3], dims[3 * RANK - 2], dims[3 * RANK - 1]
        shape = (-1, length, parts, heads, size)
        if dims[RANK - 1] != parts * heads * size or size_of(dims, 1) != dims[RANK - 1]:
            return MISFIT
        projected = vector(data, dims, 0, kind).reshape(shape)[start:stop]
        bias = vector(data, dims, 1, kind).reshape((parts, heads, size))
        for part in range(parts):
            outputs = vector(data, dims, 2 + part, kind).reshape((-1, heads, length, size))
            take_heads(projected, bias, part, outputs[start:stop])
        return DONE

    return entry


@functools.cache
def heads_gradient_entry(kind: Any, parts: int) -> Any:
    """Of the gradients of the parts; of the projection, of the bias (a sum)."""

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        heads, length, size = dims[RANK - 3], dims[RANK - 2], dims[RANK - 1]
        shape = (-1, length, parts, heads, size)
        of_projected = vector(data, dims, parts, kind).reshape(shape)[start:stop]
        of_bias = vector(data, dims, parts + 1, np.float32).reshape((parts, heads, size))
        for part in range(parts):
            upstream = vector(data, dims, part, kind).reshape((-1, heads, length, size))
            take_heads_gradient(upstream[start:stop], part, of_projected, of_bias[part])
        return DONE

    return entry

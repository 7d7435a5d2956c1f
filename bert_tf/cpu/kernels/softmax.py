"""The attention's softmax with its bias and dropout, and its gradient, in one call each.

The forward pass stores probabilities before dropout, from which the gradient follows: scale x p x
(g - sum(g x p)), where g is the upstream gradient after dropout.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bert_tf.base.compiled import numba
from bert_tf.cpu.kernels import FUNCTION, SUMMING_KERNEL
from bert_tf.cpu.kernels.native import DONE, ENTRY, MISFIT, RANK, size_of, vector
from bert_tf.cpu.kernels.numbers import exponential, narrow, ordered, unordered, wide

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_LEAST_ORDERED = np.int32(-(2**31))  # below all results of `ordered`
_BLOCK = 4096  # scores that are worked on at a time, which stay in the first cache of a core


@numba.njit(**SUMMING_KERNEL)
def softmax(
    scores: np.ndarray,
    bias: np.ndarray,
    keep: np.ndarray,
    scale: np.float32,
    keep_scale: np.float32,
    outputs: np.ndarray,
    probabilities: np.ndarray,
) -> None:
    """Compute the softmax over keys of scaled scores plus bias, then dropout.

    Args:
        scores: float32, or bfloat16 as uint16, [batch, heads, queries, keys].
        bias: float32, broadcasting to the shape of the scores; [0, 0, 0, 0] for none.
        keep: bool like `scores`, probabilities that dropout keeps; [0, 0, 0, 0] for all of them.
        scale: factor of the scores.
        keep_scale: factor of probabilities that dropout keeps.
        outputs, probabilities: like `scores`, written to: after and before dropout.
    """
    batch, heads, queries, keys = scores.shape
    is_biased = bias.size > 0
    drops = keep.size > 0
    # Factors of indices: an axis of length 1 broadcasts.
    of_row = bias.shape[0] > 1
    of_head = bias.shape[1] > 1
    of_query = bias.shape[2] > 1
    at_a_time = max(1, _BLOCK // keys)
    values = np.empty((at_a_time, keys), np.float32)
    flat = values.reshape(-1)
    for row in range(batch):
        for head in range(heads):
            for first in range(0, queries, at_a_time):
                number = min(at_a_time, queries - first)
                for place in range(number):
                    query = first + place
                    if is_biased:
                        for key in range(keys):
                            value = scale * wide(scores[row, head, query, key])
                            value += bias[row * of_row, head * of_head, query * of_query, key]
                            values[place, key] = value
                    else:
                        for key in range(keys):
                            values[place, key] = scale * wide(scores[row, head, query, key])
                    # Subtracting the maximum keeps exponentials from overflowing.
                    greatest = _LEAST_ORDERED
                    for key in range(keys):
                        greatest = np.int32(max(greatest, ordered(values[place, key])))
                    highest = unordered(greatest)
                    for key in range(keys):
                        values[place, key] -= highest
                # All rows at once, because rows are often shorter than a few vectors.
                for place in range(number * keys):
                    flat[place] = exponential(flat[place])
                for place in range(number):
                    query = first + place
                    total = _ZERO
                    for key in range(keys):
                        total += values[place, key]
                    part = _ONE / total
                    for key in range(keys):
                        values[place, key] *= part
                        probabilities[row, head, query, key] = narrow(
                            values[place, key], scores[row, head, query, key]
                        )
                    if drops:
                        for key in range(keys):
                            factor = keep_scale if keep[row, head, query, key] else _ZERO
                            outputs[row, head, query, key] = narrow(
                                values[place, key] * factor, scores[row, head, query, key]
                            )
                    else:
                        for key in range(keys):
                            outputs[row, head, query, key] = probabilities[row, head, query, key]


@numba.njit(**SUMMING_KERNEL)
def softmax_gradient(
    upstream: np.ndarray,
    probabilities: np.ndarray,
    keep: np.ndarray,
    scale: np.float32,
    keep_scale: np.float32,
    scores_gradient: np.ndarray,
) -> None:
    """Compute the gradient of the scores: scale x p x (g - sum(g x p)), g after dropout.

    Args:
        upstream: gradient of the outputs, like `scores` of `softmax`.
        probabilities, keep, scale, keep_scale: see `softmax`.
        scores_gradient: like `upstream`, written to.
    """
    batch, heads, queries, keys = upstream.shape
    drops = keep.size > 0
    kept = np.empty(keys, np.float32)
    for row in range(batch):
        for head in range(heads):
            for query in range(queries):
                if drops:
                    for key in range(keys):
                        factor = keep_scale if keep[row, head, query, key] else _ZERO
                        kept[key] = wide(upstream[row, head, query, key]) * factor
                else:
                    for key in range(keys):
                        kept[key] = wide(upstream[row, head, query, key])
                total = _ZERO
                for key in range(keys):
                    total += kept[key] * wide(probabilities[row, head, query, key])
                for key in range(keys):
                    probability = wide(probabilities[row, head, query, key])
                    scores_gradient[row, head, query, key] = narrow(
                        scale * probability * (kept[key] - total),
                        upstream[row, head, query, key],
                    )


@functools.cache
def softmax_entry(kind: Any) -> Any:
    """Return the entry of `softmax`.

    Inputs: scores, bias, keep, and scale with keep_scale. Outputs: outputs, probabilities.

    Args:
        kind: NumPy's type of scores and results, uint16 for bfloat16.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        if not _fits(dims, 1, 0) or size_of(dims, 2) not in (0, size_of(dims, 0)):
            return MISFIT
        bias = _of_queries(data, dims, 1, np.float32)
        numbers = vector(data, dims, 3, np.float32)
        softmax(
            _of_queries(data, dims, 0, kind)[start:stop],
            bias[start:stop] if bias.shape[0] > 1 else bias,
            _of_queries(data, dims, 2, np.bool_)[start:stop],
            numbers[0],
            numbers[1],
            _of_queries(data, dims, 4, kind)[start:stop],
            _of_queries(data, dims, 5, kind)[start:stop],
        )
        return DONE

    return entry


@functools.cache
def softmax_gradient_entry(kind: Any) -> Any:
    """Return the entry of `softmax_gradient`.

    Inputs: upstream, probabilities, keep, and scale with keep_scale. Output: the gradient of the
    scores.
    """

    @numba.cfunc(ENTRY, cache=True)
    def entry(data: Any, dims: Any, start: int, stop: int) -> int:
        numbers = vector(data, dims, 3, np.float32)
        softmax_gradient(
            _of_queries(data, dims, 0, kind)[start:stop],
            _of_queries(data, dims, 1, kind)[start:stop],
            _of_queries(data, dims, 2, np.bool_)[start:stop],
            numbers[0],
            numbers[1],
            _of_queries(data, dims, 4, kind)[start:stop],
        )
        return DONE

    return entry


@register_jitable(**FUNCTION)
def _of_queries(data: Any, dims: Any, number: int, kind: Any) -> Any:
    """Return a tensor as [batch, heads, queries, keys]."""
    last = RANK * (number + 1)
    shape = (dims[last - 4], dims[last - 3], dims[last - 2], dims[last - 1])
    return vector(data, dims, number, kind).reshape(shape)


@register_jitable(**FUNCTION)
def _fits(dims: Any, number: int, other: int) -> bool:
    """Return whether a tensor is empty, or broadcasts to another over axes before the last."""
    fits = dims[RANK * number + RANK - 1] == dims[RANK * other + RANK - 1]
    for axis in range(RANK - 1):
        size = dims[RANK * number + axis]
        fits = fits and (size == 1 or size == dims[RANK * other + axis])
    return fits or size_of(dims, number) == 0

"""Token vectors to text vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

_SMALLEST_NORM = 1e-12
_FEWEST_TOKENS = 1e-9  # of a row of padding alone, whose mean is 0


def combine_layers(hidden_states: Sequence[Any], combination: str) -> Any:
    """Combines layers, float32 [batch, length, hidden], by `concat` or `mean`.

    Concatenation: feature-based BERT (Devlin et al. 2019, section 5.3).
    """
    if combination == "concat":
        return ops.concatenate(list(hidden_states), axis=-1)
    return sum(hidden_states) / len(hidden_states)


def pool_tokens(states: Any, mask: Any, pooling: str) -> Any:
    """Text vectors, [batch, hidden], by `mean`, `cls` or `max`; finite for a row of padding only.

    `states` are float32 [batch, length, hidden], `mask` int32 [batch, length], 1 for tokens.
    """
    if pooling == "cls":
        return states[:, 0]
    weights = ops.cast(mask, states.dtype)[:, :, None]
    if pooling == "max":
        lowest = float(np.finfo(np.float32).min)
        greatest = ops.max(ops.where(weights > 0, states, lowest), axis=1)
        return ops.where(ops.any(weights > 0, axis=1), greatest, 0.0)
    return ops.sum(states * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), _FEWEST_TOKENS)


def unit_vectors(vectors: Any) -> Any:
    """Divides by the Euclidean norm, at least 1e-12 as in PyTorch, with finite gradients."""
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(ops.maximum(squares, _SMALLEST_NORM**2))

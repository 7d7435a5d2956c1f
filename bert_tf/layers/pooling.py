"""Pool vectors of tokens to vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

_SMALLEST_NORM = 1e-12  # of PyTorch's `normalize`
_FEWEST_TOKENS = 1e-9  # avoids 0/0 for rows that are all padding


def combine_layers(hidden_states: Sequence[Any], combination: str) -> Any:
    """Combine the outputs of several layers (feature-based BERT, Devlin et al. 2019, section 5.3).

    Args:
        hidden_states: float32 [batch, length, hidden] each.
        combination: `concat` along the last axis, or `mean`.
    """
    if combination == "concat":
        return ops.concatenate(list(hidden_states), axis=-1)
    return sum(hidden_states) / len(hidden_states)


def pool_tokens(states: Any, mask: Any, pooling: str) -> Any:
    """Return vectors of texts, [batch, hidden], finite also for rows that are all padding.

    Args:
        states: float32 [batch, length, hidden].
        mask: int32 [batch, length], 1 for tokens and 0 for padding.
        pooling: `mean` or `max` over tokens, or `cls` for the first token.
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
    """Divide by the Euclidean norm, at least 1e-12 like in PyTorch, with finite gradients."""
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(ops.maximum(squares, _SMALLEST_NORM**2))

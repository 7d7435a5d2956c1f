"""A barrier for XLA's optimizer, so that a gradient computes again instead of reading."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def behind_barrier(*tensors: Any) -> list[tf.Tensor]:
    """Return tensors that XLA takes for other values than the arguments.

    XLA computes equal expressions once and keeps the result. So a value that a gradient
    computes again is kept in memory all the same, unless its inputs are behind a barrier, as in
    `jax.checkpoint`. Also, XLA drops roundings to 16 bits between two operations in 32 bits, and
    stores 32 bits; not across a barrier.

    Outside of compiled functions, and if this TensorFlow has no barrier, nothing happens.
    """
    barrier = _barrier()
    if barrier is None or tf.executing_eagerly():
        return list(tensors)
    return list(barrier(*tensors))


@functools.cache
def _barrier() -> Callable[..., Any] | None:
    try:
        from tensorflow.compiler.tf2xla.python import xla
    except ImportError:
        return None
    return getattr(xla, "optimization_barrier", None)

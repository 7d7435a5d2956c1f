"""Element-wise work between matrix products, which XLA may compile as a function of its own.

Outside XLA every elementary operation passes through memory once, and one on bfloat16 converts each
number twice; XLA makes one pass of them all. Matrix products in bfloat16 are best left to oneDNN on
processors, whose speed XLA's reach a fifth of: so a step that XLA does not compile as a whole has
islands that it does.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from bert_tf.layers.context_value import context_value

_ARE_WANTED = ContextVar("are_wanted", default=False)
_YNNPACK = "--xla_cpu_experimental_ynn_fusion_type"


def _leave_out_ynnpack() -> None:
    """Has XLA compile reductions and small products itself; to be called before it compiles any.

    Islands run in several threads at once. Where XLA gives such work to YNNPACK, threads that run
    a function for the first time append its constants to one list without a lock
    (`EmitYnnSubgraph`, TensorFlow 2.21): one process in a hundred ended by a segmentation fault.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _YNNPACK not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_YNNPACK}=".strip()


_leave_out_ynnpack()


def compiled_islands() -> AbstractContextManager[None]:
    """Islands called in this context, inside a TensorFlow function, are compiled by XLA.

    Each new shape is compiled anew, in about a tenth of a second.
    """
    return context_value(_ARE_WANTED, keras.config.backend() == "tensorflow")


def island(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors, or None, to one tensor, compiled where that is wanted.

    Its gradient is compiled, too, and computes the function again instead of keeping what lies
    between arguments and result. Elsewhere it is the function as it is.

    Args:
        function: of Keras' operations on its arguments alone; no weights, no random numbers.
    """

    @functools.cache
    def compiled() -> Callable[..., Any]:
        return _compiled(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return (compiled() if _ARE_WANTED.get() else function)(*arguments)

    return call


def row_mean(values: Any) -> Any:
    """The mean over the last axis, which stays with length 1.

    In a compiled island a product with ones: for a sum within rows XLA has loops on processors that
    take a third longer for a whole LayerNorm.
    """
    if not _ARE_WANTED.get():
        return ops.mean(values, axis=-1, keepdims=True)
    width = values.shape[-1]
    return ops.matmul(values, ops.full((width, 1), 1.0 / width, values.dtype))


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    import tensorflow as tf

    forward = tf.function(function, autograph=False, jit_compile=True)

    @tf.function(autograph=False, jit_compile=True)
    def backward(arguments: list[Any], upstream: Any) -> list[Any]:
        sources = [value for value in arguments if _has_gradient(value)]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = function(*arguments)
        return tape.gradient(result, sources, output_gradients=upstream)

    def call(*arguments: Any) -> Any:
        given = [None if value is None else tf.convert_to_tensor(value) for value in arguments]

        @tf.custom_gradient
        def differentiable(*sources: Any) -> tuple[Any, Callable[[Any], list[Any]]]:
            return forward(*given), lambda upstream: backward(given, upstream)

        return differentiable(*filter(_has_gradient, given))

    return call


def _has_gradient(value: Any) -> bool:
    return value is not None and value.dtype.is_floating

"""Whether layers use kernels."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

import keras

from bert_tf.layers.context_value import context_value

_IS_WANTED = ContextVar("is_wanted", default=False)


def fused_kernels() -> AbstractContextManager[None]:
    """Layers called in this context, inside a TensorFlow function, use kernels where there are any.

    For graphs that run on processors, in float32 or in bfloat16 with variables in float32, and that
    XLA does not compile.
    """
    return context_value(_IS_WANTED, keras.config.backend() == "tensorflow")


def are_fused() -> bool:
    """Whether layers are called in the context of `fused_kernels`."""
    return _IS_WANTED.get()

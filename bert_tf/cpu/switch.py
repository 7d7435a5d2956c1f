"""Whether layers use kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TypeVar

import keras

Value = TypeVar("Value")


@contextlib.contextmanager
def context_value(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """What is called in this context reads `value` from `variable`; then it has its former one."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


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

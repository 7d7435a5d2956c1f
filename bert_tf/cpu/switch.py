"""The switch between the plain layers and the CPU fast path."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_FORWARD: ContextVar[Any] = ContextVar("forward", default=None)


def implementation() -> Any | None:
    """The `bert_tf.cpu.forward.Forward` to encode by; None for the plain layers."""
    return _FORWARD.get()


@contextlib.contextmanager
def fast_path(forward: Any) -> Iterator[None]:
    """Encodes by `forward` in this context, inside a TensorFlow function.

    For graphs that run on processors, in float32 or in bfloat16 with variables in float32, and that
    XLA does not compile.
    """
    token = _FORWARD.set(forward)
    try:
        yield
    finally:
        _FORWARD.reset(token)

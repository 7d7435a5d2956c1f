"""The switch between the plain layers and the CPU fast path, and whether that can be used here."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

_FORWARD: ContextVar[Any] = ContextVar("forward", default=None)


def implementation() -> Any | None:
    """The `bert_tf.cpu.forward.Forward` to encode by; None for the plain layers."""
    return _FORWARD.get()


@contextlib.contextmanager
def fast_path(forward: Any) -> Iterator[None]:
    """Encodes what is called in this context, inside a TensorFlow function, by `forward`.

    For graphs that run on processors, in float32 or in bfloat16 with variables in float32, and that
    XLA does not compile.
    """
    token = _FORWARD.set(forward)
    try:
        yield
    finally:
        _FORWARD.reset(token)


@functools.cache
def why_not() -> str | None:
    """The reason why the fast path cannot be used in this process; None if it can."""
    try:
        from bert_tf.cpu.backend import CpuBackend  # noqa: F401  compiles nothing yet
        from bert_tf.cpu.kernels.operation import register

        register()
    except Exception as error:  # of Numba, of its cache, of the linker, of TensorFlow's C interface
        return f"{type(error).__name__}: {error}"
    return None


_WARNED: set[str] = set()


def is_available(warn: Callable[[str], None] | None = None) -> bool:
    """Whether the fast path can be used in this process; if not, warns of it once.

    Args:
        warn: takes the warning; None for none.
    """
    reason = why_not()
    if reason is not None and warn is not None and reason not in _WARNED:
        _WARNED.add(reason)
        warn(
            f"the CPU fast path cannot be used ({reason}); training continues on plain TensorFlow "
            "layers, 5 to 29% slower; cpu_kernels: off hides this warning"
        )
    return reason is None

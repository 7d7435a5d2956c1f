"""Check whether the CPU fast path can be used in this process."""

from __future__ import annotations

import functools
from collections.abc import Callable

_WARNED: set[str] = set()


@functools.cache
def why_not() -> str | None:
    """Return why the fast path cannot be used in this process; None if it can."""
    try:
        from bert_tf.cpu.backend import CpuBackend  # noqa: F401  compiles nothing yet
        from bert_tf.cpu.kernels.operation import register

        register()
    # Numba, its cache, the linker or TensorFlow's C interface may fail in any way.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def is_available(warn: Callable[[str], None] | None = None) -> bool:
    """Return whether the fast path can be used in this process.

    Args:
        warn: called with the reason if it cannot, once per process and reason.
    """
    reason = why_not()
    if reason is not None and warn is not None and reason not in _WARNED:
        _WARNED.add(reason)
        warn(
            f"the CPU fast path cannot be used ({reason}); training continues on plain TensorFlow "
            "layers, 5 to 29% slower; cpu_kernels: off hides this warning"
        )
    return reason is None

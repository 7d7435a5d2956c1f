"""A value that layers read from their context instead of an argument."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextlib.contextmanager
def context_value(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """What is called in this context reads `value` from `variable`; then it has its former one."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)

"""Scalar values of config keys, from YAML, texts or Python; their faults in words."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from bert_tf.base.wording import did_you_mean

BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_LONGEST_SHOWN = 100  # characters of a refused value in a message


def shown(raw: Any) -> str:
    """Format a value for a message, cut to its first characters."""
    text = repr(raw)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def not_a_choice(raw: Any, choices: Collection[str]) -> str:
    """Return the fault of a value that is not among the choices."""
    hint = did_you_mean(str(raw), choices, "; did you mean {!r}?", cutoff=0.6)
    return f"expected one of {', '.join(choices)}, got {shown(raw)}{hint}"


def boolean_of(raw: Any) -> bool:
    """Convert `true`, `yes`, `on` and their opposites, in any case, and Python's booleans.

    Raises:
        ValueError: the value is something else; the message is for the user.
    """
    value = BOOLEANS.get(str(raw).lower())
    if value is None:
        raise ValueError(f"expected true or false, got {shown(raw)}")
    return value


def text_of(raw: Any) -> str:
    """Return a text; also convert numbers, since YAML reads the name `2024` as one.

    Raises:
        ValueError: the value is empty or something else; the message is for the user.
    """
    if not isinstance(raw, str | int | float) or isinstance(raw, bool):
        raise ValueError(f"expected text, got {shown(raw)}")
    if raw == "":
        raise ValueError("expected text, got nothing")
    return str(raw)


def number_of(kind: type, raw: Any) -> int | float:
    """Convert a text or number to a finite number.

    Args:
        kind: int or float; integers may be written as `1e6`.
        raw: the value.

    Raises:
        ValueError: the value is something else; the message is for the user.
    """
    expected = "an integer" if kind is int else "a number"
    fault = ValueError(f"expected {expected}, got {shown(raw)}")
    if isinstance(raw, bool):
        raise fault
    if kind is int and not isinstance(raw, float):
        try:
            return int(raw)
        except (TypeError, ValueError):
            pass  # "1e6" is an integer too
    try:
        value = float(raw)
    except (TypeError, ValueError):
        raise fault from None
    if not math.isfinite(value) or (kind is int and value != int(value)):
        raise fault
    return kind(value)

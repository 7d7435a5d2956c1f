"""Scalar values of config keys, from YAML, texts or Python; their bounds, and faults in words."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Collection
from typing import Any

from bert_tf.base.wording import did_you_mean

BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_LONGEST_SHOWN = 100  # characters of a refused value in a message


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Bounds of a number, as an annotation of a field's type.

    Attributes:
        minimum, maximum: inclusive bounds; None for none.
        above, below: exclusive bounds; None for none.
    """

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None


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


def number_of(kind: type, raw: Any, bounds: Bounds) -> int | float:
    """Convert a text or number to a finite number within bounds.

    Args:
        kind: int or float; integers may be written as `1e6`.
        raw: the value.
        bounds: those of the key.

    Raises:
        ValueError: the value is something else, or out of bounds; the message is for the user.
    """
    expected = "an integer" if kind is int else "a number"
    fault = ValueError(f"expected {expected}, got {shown(raw)}")
    if isinstance(raw, bool):
        raise fault
    number = _integer_of(raw) if kind is int else None
    if number is None:
        try:
            value = float(raw)
        except (TypeError, ValueError):
            raise fault from None
        if not math.isfinite(value) or (kind is int and value != int(value)):
            raise fault
        number = kind(value)
    _check_bounds(bounds, number, raw)
    return number


def _integer_of(raw: Any) -> int | None:
    """Convert an integer or its digits; None for others, such as `1e6`, which may be one too."""
    if isinstance(raw, float):
        return None
    try:
        return int(raw)
    except (TypeError, ValueError):
        return None


def _check_bounds(bounds: Bounds, value: int | float, raw: Any) -> None:
    """Raise ValueError if a number is out of bounds, with all of them in words."""
    rules = [
        (bounds.minimum, operator.ge, "at least"),
        (bounds.above, operator.gt, "above"),
        (bounds.maximum, operator.le, "at most"),
        (bounds.below, operator.lt, "below"),
    ]
    checked = [(bound, holds, words) for bound, holds, words in rules if bound is not None]
    if all(holds(value, bound) for bound, holds, _ in checked):
        return
    allowed = " and ".join(f"{words} {bound}" for bound, _, words in checked)
    if bounds.minimum is not None and bounds.maximum is not None:
        allowed = f"from {bounds.minimum} to {bounds.maximum}"
    raise ValueError(f"expected a number {allowed}, got {shown(raw)}")

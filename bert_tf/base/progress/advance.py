"""How far work is, and what it came to at its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Advance:
    """How far some work is.

    Attributes:
        text: in words, as a log shows it.
        fraction: of the work that is done, 0 to 1; None where that cannot be known.
        says_time_left: whether the text says how long the rest takes. Where it does not, a terminal
            adds an estimate from the speed of the last half minute.
    """

    text: str
    fraction: float | None = None
    says_time_left: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Closing:
    """What a job says at its end.

    Attributes:
        command: its name.
        made: paths, with a word on each.
        counts: numbers worth a look, by name.
        seconds: that it took.
        next_command: what to run next; None for nothing.
    """

    command: str
    made: Sequence[tuple[str, str]]
    counts: Sequence[tuple[str, str]]
    seconds: float
    next_command: str | None

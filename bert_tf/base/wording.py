"""Words of messages: counts with their nouns, numbers as people write them, likely names."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROLS |= {ord("\n"): "\n", ord("\t"): "\t"}


def printable(text: str) -> str:
    """Escape control characters, for instance in a file name, which a terminal would obey."""
    return text.translate(_CONTROLS)


def quantity(number: int, noun: str, plural: str | None = None) -> str:
    """Format a count and its noun: `1 row`, `1,200 rows`, `0 entries`.

    Args:
        number: the count.
        noun: singular, with adjectives before it.
        plural: plural of nouns that do not follow the rules of spelling.
    """
    return f"{number:,} {noun if number == 1 else plural or _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun.removesuffix("y") + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def did_you_mean(
    name: str,
    known: Iterable[str],
    hint: str = "did you mean {!r}?",
    *,
    otherwise: str = "",
    cutoff: float = 0.5,
) -> str:
    """Format `hint` with the nearest known name; return `otherwise` if none is similar.

    Args:
        name: the unknown name.
        known: known names.
        hint: format string with a place for the name.
        otherwise: result without a similar name.
        cutoff: least similarity, 0 to 1, see `difflib.get_close_matches`.
    """
    near = nearest(name, known, cutoff)
    return hint.format(near) if near else otherwise


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the most similar known name; None if none is similar."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def shortened(value: Any, longest: int = 60) -> str:
    """Format a value like Python's repr, cut to its first characters."""
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def listed(names: Iterable[str], most: int = 10) -> str:
    """List names in quotes, and count those beyond the first ones: `'a', 'b' and 3 more`."""
    every = list(names)
    text = ", ".join(shortened(name) for name in every[:most])
    return text if len(every) <= most else f"{text} and {len(every) - most:,} more"


def shown_size(number: int) -> str:
    """Format a number of bytes: `1 byte`, `812 bytes`, `21.4 kB`, `1,204.0 MB`."""
    if number < 1000:
        return quantity(number, "byte")
    return f"{number / 1e3:,.1f} kB" if number < 1e6 else f"{number / 1e6:,.1f} MB"


def gigabytes(number: float) -> str:
    """Format bytes in units of 10^9, with two decimals below 1."""
    return f"{number / 1e9:.2f}" if number < 1e9 else f"{number / 1e9:,.1f}"


def shown_duration(seconds: float) -> str:
    """Format seconds as `0:01:40`; `0:00:00` if negative."""
    hours, rest = divmod(max(0, round(seconds)), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"


class Rates(NamedTuple):
    """Cost of an hour of a machine.

    Attributes:
        price_per_hour: price, in any currency; 0 if not known.
        watts: electric power; 0 if not known.
    """

    price_per_hour: float = 0.0
    watts: float = 0.0

    def figures(self, seconds: float) -> dict[str, float]:
        """Return the `cost` and the `kwh` of some seconds, those that are known."""
        hours = max(seconds, 0.0) / 3600
        costs = {"cost": hours * self.price_per_hour, "kwh": hours * self.watts / 1000}
        return {name: value for name, value in costs.items() if value}

    def shown(self, seconds: float) -> str:
        """Format the result of `figures`: `cost 1.25, 0.30 kWh`; "" if neither is known."""
        words = {"cost": "cost {}", "kwh": "{} kWh"}
        figures = self.figures(seconds)
        return ", ".join(words[name].format(_amount(value)) for name, value in figures.items())


NO_RATES = Rates()


def _amount(value: float) -> str:
    """Format an amount with two decimals, or two digits if it is small."""
    return f"{value:,.2f}" if value >= 1 else f"{value:.2g}"


def shown_setting(value: Any) -> str:
    """Format a config value like YAML and `--set key=`: `5e-05`, `10000`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown_setting, value))}]"
    return str(value)


def shown_measure(value: float, error: float | None = None, rows: int | None = None) -> str:
    """Write a metric with its standard error: `0.926 ± 0.050, 27 rows`; `0.9259` without one.

    Percentages have one decimal, fractions three, as have other numbers with a small error.
    """
    if error is None:
        return f"{value:.4f}"
    is_small = 0.0 < error < 0.05  # `1.6 ± 0.0` would say that it is exact
    decimals = 1 if max(abs(value), error) > 1 and not is_small else 3
    shown = f"{value:.{decimals}f} ± {error:.{decimals}f}"
    return shown if rows is None else f"{shown}, {quantity(rows, 'row')}"


def shown_number(value: Any) -> str:
    """Format a number to read: `12,345`, `6.4312`, `0.0001235`, `1e-12`.

    Fractions are rounded to four decimals; those below 1 to four significant digits.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < 1:
        return repr(float(f"{value:.4g}"))
    whole, _, fraction = f"{value:,.4f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"

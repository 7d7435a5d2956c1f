"""Grids of settings as text: `learning_rate=3e-5,5e-5 batch_size=16,32`."""

from __future__ import annotations

import itertools

# Fine-tuning of the small BERTs (README of google-research/bert), for 4 epochs.
_PUBLISHED = {
    "batch_size": ("8", "16", "32", "64", "128"),
    "learning_rate": ("3e-4", "1e-4", "5e-5", "3e-5"),
}
PUBLISHED = "published"


def parse_grid(text: str) -> list[dict[str, str]]:
    """Every combination of the values of a grid, as text by key; the last key varies fastest.

    Args:
        text: `key=value,value` for each key, separated by spaces; the word `published` for the
            grid of the small BERTs, whose keys others then replace or add to.

    Raises:
        ValueError: it is not such a text, as a message for the user.
    """
    values: dict[str, tuple[str, ...]] = {}
    for part in text.split():
        if part == PUBLISHED:
            values = {**_PUBLISHED, **values}
            continue
        key, equals, listed = part.partition("=")
        key = key.replace("-", "_")
        found = tuple(listed.split(","))
        if not key or not equals or not all(found):
            raise ValueError(f"expected {PUBLISHED} or key=value,value, got {part!r}")
        if len(set(found)) < len(found):
            raise ValueError(f"{part!r} has a value twice")
        values[key] = found
    return [
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]

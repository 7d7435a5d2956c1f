"""Attention of one head as a picture: a row for each token, a column for each it attends to."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

_LEVELS = 8
_LONGEST_LABEL = 12


def attention_svg(
    attention: np.ndarray, tokens: Sequence[str], name: str, *, second_start: int | None = None
) -> str:
    """The picture. Names of tokens are to its left and above it, outside of its box.

    Args:
        attention: float [query, key], 0 to 1.
        tokens: of both.
        name: what it is called, as text.
        second_start: where the second text of a pair begins, which lines divide from the first;
            None of one text.
    """
    size = len(tokens)
    levels = np.minimum((attention * _LEVELS + 0.5).astype(np.int64), _LEVELS)
    paths = "".join(
        f'<path fill-opacity="{level / _LEVELS:g}" d="{_cells(levels == level)}"/>'
        for level in np.unique(levels[levels > 0]).tolist()
    )
    lines = ""
    if second_start is not None and second_start < size:
        lines = f'<path class="segments" d="M0 {second_start}h{size}M{second_start} 0v{size}"/>'
    labels = "".join(
        f'<text x="-.3" y="{place + 0.75:g}" text-anchor="end">{label}</text>'
        f'<text transform="translate({place + 0.75:g} -.3) rotate(-60)">{label}</text>'
        for place, label in enumerate(map(_label, tokens))
    )
    return (
        f'<svg class="attention" viewBox="0 0 {size} {size}" role="img" '
        f'aria-label="{escape(name)}">'
        f'<path class="frame" d="M0 0h{size}v{size}h-{size}z"/>'
        f'<g class="cells">{paths}</g>{lines}<g class="labels">{labels}</g></svg>'
    )


def attention_words(attention: np.ndarray, tokens: Sequence[str]) -> str:
    """Where most of the attention goes, in words: the patterns of Clark et al. 2019 (section 3).

    Args:
        attention: float [query, key]; the keys of a query add up to 1.
        tokens: of both; the first is [CLS], each text ends in [SEP].
    """
    size = len(tokens)
    shares = {
        "the token itself": np.trace(attention) / size,
        "the token before": np.trace(attention, offset=-1) / (size - 1),
        "the token after": np.trace(attention, offset=1) / (size - 1),
        "[CLS]": attention[:, 0].mean(),
        "[SEP]": attention[:, np.array(tokens) == "[SEP]"].sum(axis=1).mean(),
    }
    name = max(shares, key=lambda each: shares[each])
    return f"{shares[name]:.0%} on {name}"


def _cells(chosen: np.ndarray) -> str:
    """A path over all cells of a mask, bool [query, key]; neighbors in a row are one."""
    parts = []
    for row, columns in enumerate(chosen):
        changes = np.flatnonzero(np.diff(np.pad(columns.astype(np.int8), 1)))
        for begin, end in zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True):
            parts.append(f"M{begin} {row}h{end - begin}v1h{begin - end}z")
    return "".join(parts)


def _label(token: str) -> str:
    shortened = token if len(token) <= _LONGEST_LABEL else f"{token[: _LONGEST_LABEL - 1]}…"
    return escape(shortened)

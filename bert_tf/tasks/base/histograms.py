"""Histograms of report pages: numbers counted in ranges of equal or of doubling width."""

from __future__ import annotations

from typing import Any

import numpy as np

from bert_tf.tasks.base.report_sections import HistogramSection

# Bars that fit side by side on a phone, each wide enough to be pointed at.
_MOST_BARS = 24
# Decimals that are left after rounding errors are removed.
_RATIO_DECIMALS = 6
_EDGE_DECIMALS = 10
_ROUNDING = 1e-9  # relative, of a width that is itself a round number


def histogram(
    title: str,
    x_title: str,
    noun: str,
    values: np.ndarray,
    *,
    bounds: tuple[float, float] | None = None,
    is_part: np.ndarray | None = None,
    part_noun: str = "",
    note: str = "",
) -> HistogramSection:
    """Count numbers in up to 24 ranges of the same round width.

    Range n holds the numbers from n times the width up to n + 1 times the width, so edges are round
    numbers for any data. Whole numbers have ranges of whole numbers. A number at an edge belongs to
    the range above it; the highest fraction, if it is an edge, to the last range.

    Args:
        title, x_title, noun, part_noun, note: see `HistogramSection`.
        values: int or float [rows], finite, at least one.
        bounds: numbers that the ranges reach at least; None takes the least and the largest value.
        is_part: bool [rows], those that are `part_noun`.
    """
    is_whole = np.issubdtype(values.dtype, np.integer)
    low, high = (float(values.min()), float(values.max())) if bounds is None else bounds
    step = _round_step((high - low + is_whole) / _MOST_BARS)
    if is_whole:
        step = max(step, 1.0)
    first = int(_ranges_of(low, step))
    last = int(_ranges_of(high, step))
    if not is_whole and last > first and np.isclose(last * step, high):
        last -= 1
    places = np.clip(_ranges_of(values, step) - first, 0, last - first)
    edges = np.round(np.arange(first, last + 2) * step, _EDGE_DECIMALS) + 0.0  # no -0
    texts = [f"{int(edge):,}" if is_whole else f"{edge:g}" for edge in edges.tolist()]
    if is_whole and step == 1.0:
        names = texts[:-1]
        ticks = names
    else:
        ends = texts[1:]
        if is_whole:
            ends = [f"{int(edge) - 1:,}" for edge in edges[1:].tolist()]
        names = [f"{begin} to {end}" for begin, end in zip(texts, ends, strict=False)]
        ticks = texts
    size = last - first + 1
    return HistogramSection(
        title=title,
        x_title=x_title,
        noun=noun,
        names=names,
        ticks=ticks,
        counts=np.bincount(places, minlength=size),
        parts=None if is_part is None else np.bincount(places[is_part], minlength=size),
        part_noun=part_noun,
        note=note,
    )


def _ranges_of(values: np.ndarray | float, step: float) -> np.ndarray:
    """Return the number of the range of each value, int64; rounded, so that 0.15 / 0.05 is 3."""
    return np.floor(np.round(values / step, _RATIO_DECIMALS)).astype(np.int64)


def _round_step(least: float) -> float:
    """Return the least of 1, 2 and 5 times a power of 10 that is not below a width."""
    if least <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(least))
    enough = least * (1 - _ROUNDING)
    return float(next(step for step in (1, 2, 5, 10) if step * power >= enough) * power)


def doubling_histogram(
    title: str, x_title: str, noun: str, values: np.ndarray, *, most: int, note: str = ""
) -> HistogramSection:
    """Count whole numbers from 1 in ranges that double, so that long tails fit.

    Args:
        values: int [rows], at least one; 0 counts as 1.
        most: ranges; the last one has no upper bound.
    """
    places = np.minimum(np.log2(np.maximum(values, 1)).astype(np.int64), most - 1)
    counts = np.bincount(places)
    begins = 2 ** np.arange(len(counts) + 1)
    names = [
        f"{begin:,}" if begin == 1 else f"{begin:,} to {2 * begin - 1:,}"
        for begin in begins[:-1].tolist()
    ]
    ticks = [f"{begin:,}" for begin in begins.tolist()]
    if len(counts) == most:
        names[-1] = f"{begins[-2]:,} and more"
        ticks[-1] = ""
    return HistogramSection(
        title=title,
        x_title=x_title,
        noun=noun,
        names=names,
        ticks=ticks,
        counts=counts,
        note=note,
    )


def confidence_histogram(scores: Any, is_wrong: np.ndarray, note: str = "") -> HistogramSection:
    """Return the distribution of the probabilities of predictions, with that of wrong ones.

    Args:
        scores: float [rows], 0 to 1.
        is_wrong: bool [rows].
        note: see `histogram`.
    """
    return histogram(
        "Probability of the predictions",
        "probability",
        "rows",
        np.asarray(scores, np.float64),
        bounds=(0.0, 1.0),
        is_part=is_wrong,
        part_noun="wrong",
        note=note,
    )

"""Thresholds of the probability: coverage and accuracy above them, and a choice among them.

Coverage is the share of rows whose probability reaches a threshold, accuracy the share of these
whose prediction is right (selective classification, El-Yaniv & Wiener 2010).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.tasks.base.report_sections import PlotSection, TableSection

CONFIDENCE = 0.95
_NORMAL_QUANTILE = 1.959964  # of CONFIDENCE, both sides
# The coverages to try. A choice among more thresholds would need more rows for the same certainty,
# and steps of 5% are fine enough.
COVERAGES = np.arange(20, 0, -1) / 20
_MOST_NEEDED = 1 << 24  # rows; more are "never"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Threshold:
    """A threshold of the probability, and counts of the rows that reach it.

    Attributes:
        below: the threshold; rows with lower probabilities are left out.
        decided: number of kept rows.
        right: number of kept rows that are predicted right.
        rows: number of all rows.
    """

    below: float
    decided: int
    right: int
    rows: int

    @property
    def coverage(self) -> float:
        """Share of rows that are kept."""
        return self.decided / self.rows

    @property
    def accuracy(self) -> float:
        """Share of kept rows that are right."""
        return self.right / self.decided

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the accuracy at a confidence of 95%."""
        return wilson_interval(self.right, self.decided)

    def as_json(self) -> dict[str, float]:
        """Return the manifest's entry `threshold`."""
        low, high = self.interval
        measured = {"coverage": self.coverage, "accuracy": self.accuracy, "from": low, "to": high}
        return {**vars(self), **measured}


def wilson_interval(hits: int, rows: int) -> tuple[float, float]:
    """Return the bounds of a share at 95% confidence (Wilson 1927), which hold for few rows too."""
    squared = _NORMAL_QUANTILE**2
    middle = (hits + squared / 2) / (rows + squared)
    spread = hits * (rows - hits) / rows + squared / 4
    half = _NORMAL_QUANTILE * spread**0.5 / (rows + squared)
    return max(0.0, middle - half), min(1.0, middle + half)


def thresholds_of(score: np.ndarray, is_right: np.ndarray) -> list[Threshold]:
    """Measure the thresholds that keep 100%, 95%, …, 5% of the rows, the lowest first.

    Args:
        score: probability of each row's prediction, float [rows], at least one row.
        is_right: bool [rows].

    Returns:
        A threshold for each different probability: rows with the same one are kept together.
    """
    order = np.argsort(-score, kind="stable")
    descending = score[order]
    hits = np.cumsum(is_right[order])
    rows = len(score)
    by_score: dict[float, Threshold] = {}
    for coverage in COVERAGES:
        below = float(descending[int(np.ceil(coverage * rows)) - 1])
        decided = int(np.searchsorted(-descending, -below, side="right"))
        by_score[below] = Threshold(
            below=below, decided=decided, right=int(hits[decided - 1]), rows=rows
        )
    return list(by_score.values())


def chance_of(hits: int, rows: int, share: float) -> float:
    """Return the probability of at least `hits` right rows if the accuracy is only `share`."""
    from scipy.special import betainc  # only the choice of a threshold needs it

    return 1.0 if hits <= 0 else float(betainc(hits, rows - hits + 1, share))


def choose_threshold(score: np.ndarray, is_right: np.ndarray, target: float) -> Threshold:
    """Return the lowest threshold whose accuracy is above a target, with 95% confidence.

    The best of several thresholds looks better than it is, so each has to pass a test of its own
    binomial tail at 5% divided by their number (Bonferroni, as Angelopoulos et al. 2021, "Learn
    then Test"). The chance that the chosen one misses the target is then at most 5%.

    Args:
        score, is_right: see `thresholds_of`.
        target: accuracy to reach, above 0 and below 1.

    Raises:
        UsageError: no threshold passes; the message has the number of rows that would help, if any.
    """
    candidates = thresholds_of(score, is_right)
    level = (1 - CONFIDENCE) / len(candidates)
    for candidate in candidates:
        if chance_of(candidate.right, candidate.decided, target) <= level:
            return candidate
    needed = [_rows_needed(candidate, target, level) for candidate in candidates]
    best = candidates[int(np.argmin(needed))]
    rows = quantity(len(score), "evaluation row")
    start = f"--target-accuracy {target:g}: {rows} "
    if min(needed) < _MOST_NEEDED:
        raise UsageError(
            f"{start}are too few to be sure of it; about {min(needed):,} would do if they are "
            f"like these (accuracy {best.accuracy:.4f} from a probability of {best.below:g} on); "
            "give finetune a larger --eval or --eval-fraction and export again, or ask for less"
        )
    best = max(candidates, key=lambda candidate: candidate.accuracy)
    raise UsageError(
        f"{start}reach {best.accuracy:.4f} at best (from a probability of {best.below:g} on, "
        f"coverage {best.coverage:.2f}); ask for less, or train a better model"
    )


def _rows_needed(threshold: Threshold, target: float, level: float) -> int:
    """Return the number of rows like these that would pass, to about 1%; `_MOST_NEEDED` if none do.

    The number is doubled until it passes, and then narrowed down by bisection.
    """
    if threshold.accuracy <= target:
        return _MOST_NEEDED
    low = threshold.rows
    high = low
    while high < _MOST_NEEDED and not _passes(threshold, high, target, level):
        low = high
        high = 2 * high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if _passes(threshold, middle, target, level):
            high = middle
        else:
            low = middle
    return min(high, _MOST_NEEDED)


def _passes(threshold: Threshold, rows: int, target: float, level: float) -> bool:
    decided = int(threshold.coverage * rows)
    return chance_of(int(threshold.accuracy * decided), decided, target) <= level


def threshold_section(score: np.ndarray, is_right: np.ndarray) -> PlotSection:
    """Plot accuracy by coverage with intervals, and tabulate both by threshold."""
    thresholds = thresholds_of(score, is_right)
    intervals = np.array([threshold.interval for threshold in thresholds])
    rows = []
    for threshold, (low, high) in zip(thresholds, intervals.tolist(), strict=True):
        measured = (threshold.coverage, threshold.accuracy, low, high)
        rows.append([f"{threshold.below:.6f}", threshold.decided, *measured])
    return PlotSection(
        title="Accuracy by coverage",
        x_title="coverage",
        y_title="accuracy",
        x=np.array([threshold.coverage for threshold in thresholds]),
        y=np.array([threshold.accuracy for threshold in thresholds]),
        intervals=intervals,
        table=TableSection(
            title="Thresholds",
            columns=(
                ("threshold", "text"),
                ("rows", "count"),
                ("coverage", "fraction"),
                ("accuracy", "fraction"),
                ("from", "fraction"),
                ("to", "fraction"),
            ),
            rows=rows,
        ),
        note="Rows with a probability of the threshold or higher, and how many of these are "
        "predicted right, with 95% intervals. score --abstain-below takes a threshold; "
        "--target-accuracy chooses one.",
    )

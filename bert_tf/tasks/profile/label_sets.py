"""Sets of labels that hold the right one with a promised probability: split conformal prediction.

A label is in a row's set if its probability reaches a threshold: the probability that the right
label had at least, in the promised share of the evaluation rows (Vovk et al. 2005; Sadinle et al.
2019, "least ambiguous sets"). With n such rows, it is the k-th highest of these probabilities,
k = ⌈(n + 1) · coverage⌉. A new row of the same kind is equally likely to come at each of the n + 1
places among them, so it reaches the threshold with a probability of k / (n + 1), at least the
promised one, for any model. By label, the same holds for the rows of each label (Mondrian). The
promise needs k ≤ n.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.profile.profile import EvaluatedRows

_ROUNDING = 1e-9  # of (n + 1) · coverage, which may be a whole number but for float64
_SHOWN_LABELS = 5  # in a message


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelSets:
    """Adds the set of likely labels to the predictions of rows.

    Attributes:
        labels: all labels.
        least: threshold of each label's probability, with the decimals that rows show.
        coverage: promised share of the rows whose set holds the right label.
        deviation: standard deviation of that share over other evaluation rows of the same number;
            by label that of the label with the fewest rows.
    """

    labels: tuple[str, ...]
    least: tuple[float, ...]
    coverage: float
    deviation: float

    name: ClassVar[str] = "predicted_label_set"

    def values(self, predicted: Mapping[str, np.ndarray]) -> list[list[str]]:
        """Return the labels of each row's set, the most likely first; a set may be empty."""
        probabilities = np.asarray(predicted["probabilities"], np.float64).round(PROBABILITY_DIGITS)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        is_in = np.take_along_axis(probabilities >= np.array(self.least), order, axis=1)
        return [
            [self.labels[label] for label in labels[chosen].tolist()]
            for labels, chosen in zip(order, is_in, strict=True)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the manifest's entry `label_sets`."""
        return {
            "coverage": self.coverage,
            "deviation": self.deviation,
            "least_probability": dict(zip(self.labels, self.least, strict=True)),
        }

    def identity(self) -> list[float]:
        """Return the settings that decide the values."""
        return list(self.least)


def label_sets(rows: EvaluatedRows, coverage: float, *, by_label: bool) -> LabelSets:
    """Return the sets with a promised coverage.

    Args:
        rows: predictions of evaluation rows.
        coverage: the promise, above 0 and below 1.
        by_label: whether to keep it for the rows of each label, not only for all together.

    Raises:
        UsageError: the rows are too few; the message has the number that is needed.
    """
    needed = rows_needed(coverage)
    groups = [rows.gold_score]
    if by_label:
        groups = [rows.gold_score[rows.gold == label] for label in range(len(rows.labels))]
    counts = [len(scores) for scores in groups]
    fewest = min(counts)
    if fewest < needed:
        raise UsageError(_too_few(rows, coverage, needed, counts))
    least = [_threshold(scores, coverage) for scores in groups]
    return LabelSets(
        labels=rows.labels,
        least=tuple(least if by_label else least * len(rows.labels)),
        coverage=coverage,
        deviation=_deviation(fewest, coverage),
    )


def rows_needed(coverage: float) -> int:
    """Return the fewest evaluation rows for a promised coverage: 9 for 0.9, 99 for 0.99."""
    return math.ceil(coverage / (1 - coverage) - _ROUNDING)


def _place(rows: int, coverage: float) -> int:
    """Return k of the k-th highest probability."""
    return math.ceil((rows + 1) * coverage - _ROUNDING)


def _threshold(gold_score: np.ndarray, coverage: float) -> float:
    descending = np.sort(gold_score)[::-1]
    return float(descending[_place(len(gold_score), coverage) - 1])


def _deviation(rows: int, coverage: float) -> float:
    """Return the standard deviation of the coverage, which has a beta distribution (Vovk 2012)."""
    place = _place(rows, coverage)
    share = place / (rows + 1)
    return math.sqrt(share * (1 - share) / (rows + 2))


def _too_few(rows: EvaluatedRows, coverage: float, needed: int, counts: Sequence[int]) -> str:
    more = "give finetune a larger --eval or --eval-fraction and export again, or ask for less"
    if len(counts) == 1:
        return (
            f"--coverage {coverage:g}: needs {quantity(needed, 'evaluation row')}, and the model "
            f"has {counts[0]:,}; {more}"
        )
    short = [
        f"{label!r} has {count:,}"
        for label, count in zip(rows.labels, counts, strict=True)
        if count < needed
    ]
    named = ", ".join(short[:_SHOWN_LABELS])
    if len(short) > _SHOWN_LABELS:
        named += f", and {len(short) - _SHOWN_LABELS:,} more"
    return (
        f"--coverage-by-label: a coverage of {coverage:g} needs "
        f"{quantity(needed, 'evaluation row')} of each label; {named}; {more}, or leave "
        "--coverage-by-label out"
    )

"""Comparison of new rows with those that a model was made from.

Both sides are counts of rows with some property: rows that are longer than a number of tokens, have
a word that training rows never have, have a certain token, are predicted to have a certain label,
or have it with a lower probability than usual. For rows of the same kind, the count of the new ones
has a hypergeometric distribution given both sides together (Fisher's exact test), for every
property. There are some 1,300 properties. So each family of them gets an equal share of the chance
of a false alarm, and so does each property within its family (Bonferroni): a file like the training
rows is reported once in 500. Differences in less than 1% of rows are never reported: in a file of
millions they are certain, and of no use.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.profile.fisher import NEVER, chance_of_difference, rows_to_see
from bert_tf.tasks.profile.profile import EvaluatedRows, Profile
from bert_tf.tasks.profile.texts import TextProfile

FALSE_ALARMS = 0.002  # of files like the training rows
LEAST_CHANGE = 0.01  # difference of two shares of rows
SHOWN_CHANGE = 0.05  # the change whose power is reported where nothing differs
_QUANTILES = (0.25, 0.5)  # of the probability of a label, below which rows are counted
_LEAST_OF_LABEL = 30  # evaluation rows of a label; quantiles of fewer are noise
_SHOWN_DIFFERENCES = 3  # in a message


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictionMeasures:
    """The counts of predictions: those of each label, and those below usual probabilities.

    Attributes:
        labels: all labels.
        groups: label whose predictions each edge counts; None for all labels together.
        edges: float64 [edges], probabilities below which predictions are counted.
    """

    labels: tuple[str, ...]
    groups: tuple[str | None, ...]
    edges: np.ndarray

    @classmethod
    def of(cls, rows: EvaluatedRows) -> Self:
        """Choose quantiles of the probabilities of evaluation rows."""
        scores: list[tuple[str | None, np.ndarray]] = [(None, rows.score)]
        for number, label in enumerate(rows.labels):
            scores.append((label, rows.score[rows.predicted == number]))
        groups: list[str | None] = []
        edges: list[float] = []
        for group, scores_of_group in scores:
            if len(scores_of_group) >= _LEAST_OF_LABEL:
                quantiles = np.quantile(scores_of_group, _QUANTILES, method="lower").tolist()
                groups += [group] * len(quantiles)
                edges += quantiles
        return cls(labels=rows.labels, groups=tuple(groups), edges=np.array(edges))

    def names(self) -> list[str]:
        """Describe the rows of each count of `counts`."""
        names = [f"are predicted as {label!r}" for label in self.labels]
        for group, edge in zip(self.groups, self.edges.tolist(), strict=True):
            which = "" if group is None else f"predicted as {group!r} "
            names.append(f"{which}have a probability below {edge:g}")
        return names

    @property
    def families(self) -> list[int]:
        """The size of each family of counts: labels, probabilities."""
        return [len(self.labels), len(self.edges)]

    def counts(self, predicted: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Count predictions, int64 [sum of `families`].

        Args:
            predicted: number of each row's label, int [rows].
            score: its probability, as rows show it, float [rows].
        """
        numbers = {label: number for number, label in enumerate(self.labels)}
        of_label = np.bincount(predicted, minlength=len(self.labels))
        below = []
        for group, edge in zip(self.groups, self.edges.tolist(), strict=True):
            is_below = score < edge
            if group is not None:
                is_below &= predicted == numbers[group]
            below.append(is_below.sum())
        return np.array([*of_label, *below], np.int64)

    def totals(self, counts: np.ndarray, rows: int) -> np.ndarray:
        """Return the number of rows from which each count is taken, int64 [sum of `families`]."""
        of_label = dict(zip(self.labels, counts.tolist(), strict=False))
        below = [rows if group is None else of_label[group] for group in self.groups]
        return np.array([*[rows] * len(self.labels), *below], np.int64)


class Counts(NamedTuple):
    """Counts that add up over blocks of a file.

    Attributes:
        rows: rows with a prediction.
        predictions: int64, see `PredictionMeasures.counts`; [] without any.
        text_rows: rows whose texts were counted, perhaps a part of all.
        texts: int64, see `TextMeasures.counts`; [] without any.
    """

    rows: int
    predictions: np.ndarray
    text_rows: int
    texts: np.ndarray

    @classmethod
    def sum_of(cls, parts: Sequence[Sequence[Any]]) -> Self:
        """Add counts, or lists of the same values, of at least one block."""
        rows, predictions, text_rows, texts = zip(*parts, strict=True)
        return cls(sum(rows), np.sum(predictions, axis=0), sum(text_rows), np.sum(texts, axis=0))

    def as_json(self) -> list[Any]:
        """Return the values as numbers and lists."""
        return [self.rows, self.predictions.tolist(), self.text_rows, self.texts.tolist()]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A property that more or fewer rows have than training rows had.

    Attributes:
        name: the property, as the end of a sentence about rows: "have more than 40 tokens".
        share: share of the new rows with it.
        expected: share of training rows with it; for predictions, of evaluation rows.
        family: number of its family, of which only one property is shown.
        p_value: chance of such a difference between rows of the same kind, before any correction.
    """

    name: str
    share: float
    expected: float
    family: int
    p_value: float

    def __str__(self) -> str:
        return f"{self.share:.1%} of rows {self.name} instead of {self.expected:.1%}"


class Measured(NamedTuple):
    """A property of rows, whether it differs or not.

    Attributes:
        kind: `text`, or `label` for the share of a label, whose name is then `name`.
        name, share, expected: see `Difference`.
    """

    kind: str
    name: str
    share: float
    expected: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drift:
    """The comparison of a file with the profile.

    Attributes:
        rows: its rows.
        differences: the most certain first; [] if there are none.
        rows_needed: fewest rows that show the most certain difference; without differences, a new
            property in 5% of the rows.
        measured: lengths, words and labels, for a page.
    """

    rows: int
    differences: list[Difference]
    rows_needed: int
    measured: list[Measured]

    def __str__(self) -> str:
        needed = quantity(self.rows_needed, "row")
        if not self.differences:
            alike = f"{quantity(self.rows, 'row')} look like the training rows"
            if self.rows_needed >= NEVER:
                return (
                    f"{alike}, which are too few to show something new in {SHOWN_CHANGE:.0%} of "
                    "rows"
                )
            return (
                f"{alike}; something new in {SHOWN_CHANGE:.0%} of rows would show from {needed} on"
            )
        # The most certain difference of each family: it comes first, and is assigned last here.
        of_family = {difference.family: difference for difference in reversed(self.differences)}
        largest = list(reversed(of_family.values()))
        largest.sort(key=lambda difference: difference.p_value)
        del largest[_SHOWN_DIFFERENCES:]
        more = len(self.differences) - len(largest)
        others = f"; and {more:,} more" if more else ""
        return (
            f"differs from the training rows: {'; '.join(map(str, largest))}{others} "
            f"({needed} like these are enough to be sure)"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the file's entry in the manifest."""
        return {
            "is_like_training": not self.differences,
            "rows": self.rows,
            "rows_needed": self.rows_needed,
            "differences": [dataclasses.asdict(difference) for difference in self.differences],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Restore a drift from its entry in a manifest, without `measured`."""
        return cls(
            rows=entry["rows"],
            differences=[Difference(**difference) for difference in entry["differences"]],
            rows_needed=entry["rows_needed"],
            measured=[],
        )


class _Sides(NamedTuple):
    """Counts of rows on both sides, int64 [properties] each.

    Attributes:
        new: new rows with the property.
        new_rows: all new rows.
        old: training or evaluation rows with the property.
        old_rows: all training or evaluation rows.
    """

    new: np.ndarray
    new_rows: np.ndarray
    old: np.ndarray
    old_rows: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class DriftReference:
    """Training rows that new rows are compared with; None for measures that the profile lacks.

    Attributes:
        texts: profile of the texts of training rows.
        predictions: the counts of predictions to compare.
        predicted: these counts of evaluation rows, int64.
        evaluated: number of evaluation rows.
    """

    texts: TextProfile | None
    predictions: PredictionMeasures | None
    predicted: np.ndarray
    evaluated: int

    @classmethod
    def of(cls, profile: Profile) -> Self | None:
        """Make the reference from a model's profile; None if that has nothing to compare with."""
        rows = profile.evaluation
        if rows is None and profile.texts is None:
            return None
        measures = None if rows is None else PredictionMeasures.of(rows)
        predicted = np.zeros(0, np.int64)
        if rows is not None and measures is not None:
            predicted = measures.counts(rows.predicted, rows.score)
        return cls(
            texts=profile.texts,
            predictions=measures,
            predicted=predicted,
            evaluated=0 if rows is None else len(rows.score),
        )

    def counts_of_predictions(self, labels: Iterable[str], scores: Any) -> np.ndarray:
        """Count the predictions of rows, labels and their probabilities; [] without any."""
        if self.predictions is None:
            return np.zeros(0, np.int64)
        number_of = {label: number for number, label in enumerate(self.predictions.labels)}
        predicted = np.array([number_of[label] for label in labels], np.int64)
        score = np.asarray(scores, np.float64).round(PROBABILITY_DIGITS)
        return self.predictions.counts(predicted, score)

    def compare(self, counts: Counts, vocab: Callable[[], Sequence[str]]) -> Drift:
        """Compare the counts of a file.

        Args:
            counts: its counts.
            vocab: returns the entries of the vocabulary, to name tokens that differ.
        """
        sides, families = self._sides(counts)
        # Each family has the same share of the false alarms, and so has each property within it.
        family = np.repeat(np.arange(len(families)), families)
        levels = FALSE_ALARMS / len(families) / np.repeat(families, families)
        chances = chance_of_difference(sides.new, sides.new_rows, sides.old, sides.old_rows)
        shares = sides.new / np.maximum(sides.new_rows, 1)
        expected = sides.old / np.maximum(sides.old_rows, 1)
        is_other = (chances <= levels) & (np.abs(shares - expected) >= LEAST_CHANGE)
        order = np.flatnonzero(is_other)
        order = order[np.argsort(chances[order], kind="stable")]
        if len(order):
            names = self._names(vocab)
            needed = _rows_for_difference(sides, int(order[0]), levels, rows=counts.rows)
        else:
            names = []
            needed = _rows_for_any(sides, levels)
        return Drift(
            rows=counts.rows,
            differences=[
                Difference(
                    name=names[place],
                    share=float(shares[place]),
                    expected=float(expected[place]),
                    family=int(family[place]),
                    p_value=float(chances[place]),
                )
                for place in order.tolist()
            ],
            rows_needed=needed,
            measured=self._measured(shares, expected),
        )

    def _sides(self, counts: Counts) -> tuple[_Sides, list[int]]:
        """Return the counts of texts, then those of predictions, and the sizes of the families."""
        families: list[int] = []
        parts: list[_Sides] = []
        if self.texts is not None:
            number = len(self.texts.counts)
            families += self.texts.measures.families
            parts.append(
                _Sides(
                    new=counts.texts,
                    new_rows=np.full(number, counts.text_rows),
                    old=self.texts.counts,
                    old_rows=np.full(number, self.texts.rows),
                )
            )
        if self.predictions is not None:
            families += self.predictions.families
            parts.append(
                _Sides(
                    new=counts.predictions,
                    new_rows=self.predictions.totals(counts.predictions, counts.rows),
                    old=self.predicted,
                    old_rows=self.predictions.totals(self.predicted, self.evaluated),
                )
            )
        joined = [np.concatenate(arrays).astype(np.int64) for arrays in zip(*parts, strict=True)]
        return _Sides(*joined), families

    def _measured(self, shares: np.ndarray, expected: np.ndarray) -> list[Measured]:
        places: list[tuple[str, int, str]] = []
        first = 0
        if self.texts is not None:
            names = enumerate(self.texts.measures.first_names())
            places += [("text", place, name) for place, name in names]
            first = sum(self.texts.measures.families)
        if self.predictions is not None:
            labels = enumerate(self.predictions.labels, start=first)
            places += [("label", place, label) for place, label in labels]
        return [
            Measured(kind, name, float(shares[place]), float(expected[place]))
            for kind, place, name in places
        ]

    def _names(self, vocab: Callable[[], Sequence[str]]) -> list[str]:
        names = [] if self.texts is None else self.texts.measures.names(vocab())
        return names if self.predictions is None else [*names, *self.predictions.names()]


def _rows_for_difference(sides: _Sides, place: int, levels: np.ndarray, *, rows: int) -> int:
    """Return the number of rows that would be enough to report a difference, at most `rows`.

    Args:
        sides: all counts.
        place: the property that differs.
        levels: p-value of each property below which a difference is reported.
        rows: number of the new rows.
    """
    new_rows = max(int(sides.new_rows[place]), 1)
    needed = rows_to_see(
        int(sides.new[place]) / new_rows,
        known=int(sides.old[place]),
        known_rows=int(sides.old_rows[place]),
        level=float(levels[place]),
    )
    # The property may be one of the rows of a label; scale to all rows.
    return min(math.ceil(needed * rows / new_rows), rows)


def _rows_for_any(sides: _Sides, levels: np.ndarray) -> int:
    """Return the number of rows that would show a new property of SHOWN_CHANGE of them.

    No training row has such a property. The strictest test of all decides.
    """
    place = int(levels.argmin())
    return rows_to_see(
        SHOWN_CHANGE,
        known=0,
        known_rows=int(sides.old_rows[place]),
        level=float(levels[place]),
    )

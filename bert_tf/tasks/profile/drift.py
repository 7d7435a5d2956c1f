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
from bert_tf.tasks.profile.profile import EvaluatedRows, Profile
from bert_tf.tasks.profile.texts import TextProfile

FALSE_ALARMS = 0.002  # of files like the training rows
LEAST_CHANGE = 0.01  # difference of two shares of rows
SHOWN_CHANGE = 0.05  # the change whose power is reported where nothing differs
_QUANTILES = (0.25, 0.5)  # of the probability of a label, below which rows are counted
_LEAST_OF_LABEL = 30  # evaluation rows of a label; quantiles of fewer are noise
_MOST_ROWS = 1 << 30  # stands for "never" as a number of rows needed
_SIZES = 1000  # numbers of rows to try, from 1 to _MOST_ROWS, 2% apart
_SHOWN_DIFFERENCES = 3  # in a message
_TINY = 1e-300  # avoids a division by 0


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
            if self.rows_needed >= _MOST_ROWS:
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
        families: list[int] = []
        # Counts and totals of the new rows, and of the known ones, for texts and predictions.
        sides: list[tuple[np.ndarray, ...]] = []
        if self.texts is not None:
            number = len(self.texts.counts)
            families += self.texts.measures.families
            new_totals = np.full(number, counts.text_rows)
            old_totals = np.full(number, self.texts.rows)
            sides.append((counts.texts, new_totals, self.texts.counts, old_totals))
        if self.predictions is not None:
            families += self.predictions.families
            new_totals = self.predictions.totals(counts.predictions, counts.rows)
            old_totals = self.predictions.totals(self.predicted, self.evaluated)
            sides.append((counts.predictions, new_totals, self.predicted, old_totals))
        new, new_rows, old, old_rows = (
            np.concatenate(parts).astype(np.int64) for parts in zip(*sides, strict=True)
        )
        family = np.repeat(np.arange(len(families)), families)
        levels = FALSE_ALARMS / len(families) / np.repeat(families, families)
        chances = chance_of_difference(new, new_rows, old, old_rows)
        shares = new / np.maximum(new_rows, 1)
        expected = old / np.maximum(old_rows, 1)
        is_other = (chances <= levels) & (np.abs(shares - expected) >= LEAST_CHANGE)
        order = np.flatnonzero(is_other)
        order = order[np.argsort(chances[order], kind="stable")]
        names = self._names(vocab) if len(order) else []
        if len(order):
            first = int(order[0])
            share = float(shares[first])
            known = int(old[first])
        else:  # the power to see a property that no training row has, by the strictest test
            first = int(levels.argmin())
            share = SHOWN_CHANGE
            known = 0
        needed = _rows_to_see(
            share, known=known, known_rows=int(old_rows[first]), level=float(levels[first])
        )
        if len(order):  # a property may be of the rows of one label; scale to all rows
            needed = math.ceil(needed * counts.rows / max(int(new_rows[first]), 1))
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
            rows_needed=min(needed, counts.rows) if len(order) else needed,
            measured=self._measured(shares, expected),
        )

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


def chance_of_difference(
    new: np.ndarray, new_rows: np.ndarray, old: np.ndarray, old_rows: np.ndarray
) -> np.ndarray:
    """Return bounds of the two-sided p-value of Fisher's exact test, float64.

    The distribution is log-concave: away from its mode each probability is at most the ratio r of
    the first two times the one before, so a tail is at most its first term divided by 1 - r. Far
    out, where it matters, that is nearly exact, and needs no library.

    Args:
        new, old: int64 [tests], rows with a property.
        new_rows, old_rows: int64 [tests], all rows.
    """
    both = new + old
    rows = new_rows + old_rows
    log_term = _log_choices(new_rows, new) + _log_choices(old_rows, old) - _log_choices(rows, both)
    is_more = new * old_rows >= old * new_rows
    # Rows without the property.
    new_others = new_rows - new
    old_others = old_rows - old
    ratio = np.where(
        is_more,
        new_others * old / ((new + 1.0) * (old_others + 1.0)),
        new * old_others / ((new_others + 1.0) * (old + 1.0)),
    )
    tail = np.exp(log_term) / np.maximum(1.0 - ratio, _TINY)  # not used where the ratio is 1
    return np.where(ratio < 1.0, np.minimum(1.0, 2.0 * tail), 1.0)


def _log_factorial(number: np.ndarray) -> np.ndarray:
    """Return log(n!), float64, to eleven digits.

    Stirling's series is exact enough from 11 on, so log((n + 10)!) is computed and reduced.
    """
    shifted = number + 11.0
    product = np.ones(len(shifted))
    for step in range(1, 11):
        product *= number + float(step)
    series = 1 / (12 * shifted) - 1 / (360 * shifted**3) + 1 / (1260 * shifted**5)
    main = (shifted - 0.5) * np.log(shifted) - shifted + 0.5 * math.log(2 * math.pi)
    return main + series - np.log(product)


def _log_choices(number: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the logarithm of binomial coefficients, float64."""
    return _log_factorial(number) - _log_factorial(chosen) - _log_factorial(number - chosen)


def _rows_to_see(share: float, *, known: int, known_rows: int, level: float) -> int:
    """Return the number of new rows from which a property would be reported.

    Args:
        share: share of the new rows that have the property.
        known: training or evaluation rows that have it.
        known_rows: all of these rows.
        level: p-value below which a difference is reported.
    """
    rows = np.unique(np.geomspace(1, _MOST_ROWS, _SIZES).astype(np.int64))
    old = np.full(len(rows), known)
    old_rows = np.full(len(rows), known_rows)
    chances = chance_of_difference(np.round(share * rows).astype(np.int64), rows, old, old_rows)
    enough = rows[chances <= level]
    return int(enough[0]) if len(enough) else _MOST_ROWS

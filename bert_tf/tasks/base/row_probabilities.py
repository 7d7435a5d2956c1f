"""The probabilities of all that a task chooses from, as values of rows (`--scores`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections.scoring import BEST, top_of
from bert_tf.tasks.base.declaration import ProbabilitiesField, ServedTaskDeclaration
from bert_tf.tasks.base.prediction_rows import rounded_probabilities

PROBABILITIES, RANKING = "predicted_probabilities", "predicted_ranking"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowProbabilities:
    """Which probabilities are added to the predictions of rows.

    Attributes:
        field: where the model has them.
        labels: their names; None where every row has its own.
        top: how many of the likeliest; None for all, in the order of the labels.
    """

    field: ProbabilitiesField
    labels: tuple[str, ...] | None
    top: int | None

    @classmethod
    def of(
        cls, declared: ServedTaskDeclaration, task: Mapping[str, Any], scores: str, model: str
    ) -> Self | None:
        """Those that `--scores` asks for; None for `best`, of which predictions have their own.

        Args:
            declared: the model's task.
            task: content of its `task.json`.
            scores: `best`, `all` or `top-N`.
            model: for the message.

        Raises:
            UsageError: the task has no such probabilities.
        """
        if scores == BEST:
            return None
        if declared.probabilities is None:
            raise UsageError(
                f"--scores {scores} has no meaning for {model}: {declared.name} predicts "
                f"{declared.summary}; leave it out"
            )
        field = declared.probabilities
        labels = None if field.labels is None else tuple(task[field.labels])
        return cls(field=field, labels=labels, top=top_of(scores))

    @property
    def name(self) -> str:
        """What the values are called."""
        return PROBABILITIES if self.top is None else RANKING

    @property
    def are_labeled(self) -> bool:
        """Whether the values are objects with the same keys in all rows, `labels`."""
        return self.labels is not None and self.top is None

    def values(
        self, predicted: Mapping[str, np.ndarray], inputs: Mapping[str, Sequence[Any]]
    ) -> list[Any]:
        """A value for each row, ready for JSON.

        It is an object from label to probability, or a list in the order of a row's choices; of the
        likeliest a list of objects with what it is and its `score`, the best first and of equal
        ones the first. Probabilities are rounded as those of `prediction_rows`.

        Args:
            predicted: the model's outputs, [rows, …] by name.
            inputs: the model's inputs, by name.

        Raises:
            InputError: the model has no such output.
        """
        scores = predicted.get(self.field.output)
        if scores is None:
            raise InputError(
                f"the exported model has no output {self.field.output}, which --scores needs: it "
                "is of an earlier release; export it again"
            )
        counts = [scores.shape[1]] * len(scores)
        if self.field.list_input is not None:
            counts = list(map(len, inputs[self.field.list_input]))
        if self.top is not None:
            return list(self._rankings(scores, counts))
        rows = zip(rounded_probabilities(scores), counts, strict=True)
        if self.labels is None:
            return [row[:count] for row, count in rows]
        return [dict(zip(self.labels, row, strict=True)) for row, _ in rows]

    def _rankings(self, scores: np.ndarray, counts: Sequence[int]) -> Iterator[list[Any]]:
        order = np.argsort(-scores, axis=1, kind="stable")
        names: Sequence[Any] = range(scores.shape[1]) if self.labels is None else self.labels
        best = rounded_probabilities(np.take_along_axis(scores, order, axis=1))
        for numbers, values, count in zip(order.tolist(), best, counts, strict=True):
            chosen = list(zip(numbers, values, strict=True))[: min(count, self.top or count)]
            yield [{self.field.noun: names[number], "score": score} for number, score in chosen]

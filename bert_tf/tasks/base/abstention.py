"""No decision where a prediction's probability is too low (`--abstain-below`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from bert_tf.base.errors import UsageError
from bert_tf.tasks.base.declaration import ServedTaskDeclaration

if TYPE_CHECKING:
    from bert_tf.tasks.base.task import TaskResults


@dataclasses.dataclass(frozen=True, kw_only=True)
class Abstention:
    """Which predictions are left out.

    Attributes:
        fields: names of a prediction and of the probability that decides it.
        below: predictions with a lower probability, as rows show it, are left out.
    """

    fields: tuple[str, str]
    below: float

    @classmethod
    def of(cls, declaration: ServedTaskDeclaration, below: float, model: str) -> Self:
        """The abstention that `--abstain-below` asks for.

        Args:
            declaration: the model's task.
            below: value of the flag.
            model: for the message.

        Raises:
            UsageError: the task's predictions have no probability that could decide them.
        """
        for field in declaration.predictions:
            if field.decided_by is not None:
                return cls(fields=(field.name, field.decided_by), below=below)
        raise UsageError(
            f"--abstain-below has no meaning for {model}: {declaration.name} predicts "
            f"{declaration.summary}, without a probability to decide by"
        )

    def apply(self, rows: Sequence[dict[str, Any]]) -> None:
        """Sets predictions to None where rows, ready for JSON, show a lower probability."""
        name, probability = self.fields
        for row in rows:
            if row[probability] < self.below:
                row[name] = None

    def is_decided(self, row: dict[str, Any]) -> bool:
        """Whether a row still has its prediction."""
        return row[self.fields[0]] is not None

    def measured(self, results: TaskResults) -> TaskResults:
        """Results without these predictions, and what that leaves.

        The metrics are `coverage`, the fraction of rows that are decided, and where there are any
        `selective_accuracy`, the fraction of these that are right (El-Yaniv & Wiener 2010). All
        other metrics remain those of all rows.
        """
        rows = [dict(row) for row in results.predictions]
        self.apply(rows)
        decided = [row for row in rows if self.is_decided(row)]
        metrics = {"coverage": len(decided) / len(rows)}
        if decided:
            metrics["selective_accuracy"] = self._accuracy(decided)
        return dataclasses.replace(
            results, metrics={**results.metrics, **metrics}, predictions=rows
        )

    def _accuracy(self, rows: Iterable[dict[str, Any]]) -> float:
        right = [row["label"] == row[self.fields[0]] for row in rows]
        return sum(right) / len(right)

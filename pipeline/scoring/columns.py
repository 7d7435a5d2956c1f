"""Which columns a model reads, and which it adds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.scoring import ScoreConfig, check_columns_are_read
from bert_tf.tasks.declaration import PredictionField
from bert_tf.tasks.registry import declared_task


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringColumns:
    """The columns of a scoring job.

    Attributes:
        sources: column of the tables by name of the model's input.
        fields: the columns that are added.
    """

    sources: dict[str, str]
    fields: tuple[PredictionField, ...]

    @property
    def predictions(self) -> tuple[str, ...]:
        """Names of the columns that are added."""
        return tuple(field.name for field in self.fields)


def scoring_columns(config: ScoreConfig, task: Mapping[str, Any] | None) -> ScoringColumns:
    """The columns that a config names; what it leaves open is the model's.

    Args:
        config: what was asked for.
        task: content of the model's `task.json`.

    Raises:
        UsageError: the model has no task or one that is not known, or a column is given that it
            does not read.
    """
    if task is None:
        raise UsageError(
            f"{config.model}: was pretrained only and predicts nothing; "
            "run bert-pipeline finetune with --init on it, then export that run"
        )
    declared = declared_task(task, config.model)
    known = task["columns"]
    read = [name for name in declared.inputs if known.get(name) is not None]
    check_columns_are_read(config, read)
    return ScoringColumns(
        sources={name: getattr(config, f"{name}_column") or known[name] for name in read},
        fields=declared.predictions,
    )

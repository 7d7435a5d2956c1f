"""What the command line and scoring know of a task without importing TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Literal

from bert_tf.config.sections.finetuning import FinetuneConfig

FieldKind = Literal["label", "probability", "text", "place", "value", "json"]


@dataclasses.dataclass(frozen=True)
class PredictionField:
    """A column that predictions add to rows.

    Attributes:
        name: of the column, and of the exported model's output.
        kind: what it holds: a `label`; a `probability`; a `text`; a `place`, counted in characters,
            -1 for none; any other number, a `value`; or lists and objects, as `json`: JSON text in
            the outputs of an exported model, Python lists and dicts in a task's own predictions.
    """

    name: str
    kind: FieldKind


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskDeclaration:
    """A task as `bert_tf.tasks.registry` lists it.

    Attributes:
        name: as on the command line and in `task.json`.
        summary: what a model of it gives, for the help.
        options: the section of `finetune`.
        example: a command line to copy.
        inputs: names of the texts that an exported model may take; those whose column is null in
            the model's `task.json` it does not.
        predictions: the columns that it adds, in order.
        implementation: `module:class`, see `bert_tf.tasks.task.Task`.
    """

    name: str
    summary: str
    options: type[FinetuneConfig]
    example: str
    inputs: tuple[str, ...]
    predictions: tuple[PredictionField, ...]
    implementation: str

"""What a fine-tuned model predicts of one row of texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bert_tf.engines.row_calls import decoded_texts
from bert_tf.export.loading import TrainedModel
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.base.row_probabilities import RowProbabilities
from bert_tf.tasks.registry import declared_task

_MOST_LABELS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """A value, or a label and its probability.

    Attributes:
        name: of the value, as `score` names its column, or the label.
        value: as JSON has it; None of a label.
        probability: of a label; None of a value.
    """

    name: str
    value: Any = None
    probability: float | None = None


def predictions(
    trained: TrainedModel, module: TextModule, texts: Sequence[str]
) -> list[Prediction]:
    """The predictions of a row as `score` would write them, then the likeliest labels.

    Args:
        trained: a model with a task.
        module: the graph that `export` writes of it.
        texts: of the row, in the order of the task's inputs.

    Returns:
        [] if the task takes another number of texts, or lists of them.
    """
    settings = trained.directory.task or {}
    path = str(trained.directory.path)
    declared = declared_task(settings, path)
    columns = {name: settings["columns"].get(name) for name in declared.inputs}
    given = [name for name, column in columns.items() if column]
    if len(given) != len(texts) or not all(isinstance(columns[name], str) for name in given):
        return []
    inputs = {name: [text] for name, text in zip(given, texts, strict=True)}
    outputs = module.predict(
        {name: tf.constant(column) for name, column in inputs.items()},
        tf.constant(DEFAULT_BATCH_TOKENS, tf.int32),
    )
    predicted = {name: decoded_texts(tensor.numpy()) for name, tensor in outputs.items()}
    fields = [field for field in declared.predictions if not field.is_extra]
    (row,) = prediction_rows(fields, predicted)
    found = [Prediction(name=name, value=value) for name, value in row.items()]
    if declared.probabilities is None or declared.probabilities.list_input is not None:
        return found
    ranking = RowProbabilities.of(declared, settings, f"top-{_MOST_LABELS}", path)
    assert ranking is not None
    (labels,) = ranking.values(predicted, inputs)
    noun = declared.probabilities.noun
    return found + [
        Prediction(name=str(label[noun]), probability=label["score"]) for label in labels
    ]

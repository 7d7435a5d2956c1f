"""Runs a task's model over labeled rows: sorted by length, in batches of a token budget."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Advance, Console
from bert_tf.tasks.base.task import Task, TaskData, TaskResults
from bert_tf.tasks.running.forward import ForwardPass, forward_progress
from bert_tf.training.protocols import Batch

_ACTION = "evaluating"


class Evaluator:
    """Measures a model on one data set; made once, called after every epoch.

    Every process runs the whole data set on one device, so all workers know the same metrics.

    Args:
        task: the task.
        model: its built Keras model.
        data: the rows.
        pad_id: id of [PAD].
        batch_tokens: tokens per batch, padding included.
        max_rows: rows of the biggest batch; None for no limit.
        console: shows progress.
    """

    def __init__(
        self,
        task: Task,
        model: Any,
        data: TaskData,
        *,
        pad_id: int,
        batch_tokens: int,
        max_rows: int | None,
        console: Console,
    ):
        self._task = task
        self._model = model
        self._data = data
        self._forward = ForwardPass(
            self._outputs_and_sums,
            data,
            rows=len(data.source),
            max_seq_length=task.max_seq_length,
            pad_id=pad_id,
            batch_tokens=batch_tokens,
            max_rows=max_rows,
            console=console,
            action=_ACTION,
        )

    def run(self) -> TaskResults:
        """The task's metrics and predictions, with the mean loss as the metric `loss`.

        There is no loss where no row has a target: answers whose place is not given, for example.
        """
        return self._measured(self._task, *self._forward_all())

    def predict(self) -> dict[str, Any]:
        """The task's predictions for the rows of the file, see `Task.predict`."""
        return self._task.predict(self._data, self._forward_all()[0])

    def fit_and_run(self) -> tuple[Task, TaskResults]:
        """As `run`, by the task as these rows fit it, see `Task.fitted`; returns that task too."""
        reduced, loss = self._forward_all()
        fitted = self._task.fitted(*self._data.averaged(reduced))
        return fitted, self._measured(fitted, reduced, loss)

    def _forward_all(self) -> tuple[dict[str, np.ndarray], float | None]:
        """The reduced outputs in row order, and the mean loss."""
        reduced: list[dict[str, np.ndarray]] = []
        losses: dict[str, np.ndarray] = {}
        for chosen, (outputs, sums) in self._forward:
            for term, pair in sums.items():
                losses[term] = losses.get(term, 0.0) + pair.numpy().astype(np.float64)
            arrays = {name: values.numpy() for name, values in outputs.items()}
            reduced.append(self._task.reduce(self._data, chosen, arrays))
        has_loss = all(weight for _, weight in losses.values())
        loss = sum(total / weight for total, weight in losses.values()) if has_loss else None
        return self._forward.in_row_order(reduced), None if loss is None else float(loss)

    def _measured(
        self, task: Task, reduced: dict[str, np.ndarray], loss: float | None
    ) -> TaskResults:
        predicted = task.predict(*self._data.averaged(reduced))
        results = task.measure(self._data.source, predicted)
        metrics = {} if loss is None else {"loss": loss}
        return dataclasses.replace(
            results, metrics={**metrics, **results.metrics}, predicted=predicted
        )

    def _outputs_and_sums(self, batch: Batch) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
        outputs = self._task.outputs(self._model, batch, training=False, dropout_key=None)
        parts = self._task.loss_parts(outputs, batch)
        weights = self._task.weights(batch)
        return outputs, {
            term: tf.stack([parts.losses[term], weight]) for term, weight in weights.items()
        }


def evaluation_progress(done: int, total: int) -> Advance:
    """How far an evaluation is, in rows of the file."""
    return forward_progress(_ACTION, done, total)

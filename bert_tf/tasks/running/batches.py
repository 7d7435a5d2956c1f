"""Batches of labeled rows: in training, and through a model with fixed weights."""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Advance, Console
from bert_tf.base.processor import map_ahead
from bert_tf.cpu.cores import operations_at_once
from bert_tf.data.rows.encoded_rows import Batching, Lengths, epoch_batches, padded_length
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import Task
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.training.arithmetic import inference_form
from bert_tf.training.protocols import Batch
from bert_tf.xla.forward import compiled

EVALUATING = "evaluating"
_TOKENS_ON_ACCELERATORS = 32768  # of a batch at least


class ForwardPass:
    """Runs a function of batches over all rows of a data set; traced once, run any number of times.

    On accelerators batches have at least 32,768 tokens, which smaller ones would not keep busy.

    Args:
        compute: turns a batch of `TaskData.batch` into tensors, in which those of rows of padding
            are the last ones; traced into a graph.
        data: the rows.
        batching: sizes of batches.
        rows: number of rows of the file, for the progress.
        action: name of the work in the line of progress.
    """

    def __init__(
        self,
        compute: Callable[[Batch], Any],
        data: TaskData,
        batching: Batching,
        *,
        rows: int,
        console: Console,
        action: str,
    ):
        self._data = data
        tokens = batching.batch_tokens
        if batching.has_few_shapes:
            tokens = max(tokens, _TOKENS_ON_ACCELERATORS)
        budget = tokens // data.rows.sequences_per_row
        self._batching = dataclasses.replace(batching, batch_tokens=budget)
        self._rows = rows
        self._console = console
        self._action = action
        self._owners = np.arange(len(data.rows)) if data.owners is None else data.owners
        self._batches = self._batching.batches(data.rows.lengths)
        signature = {
            name: tf.TensorSpec([None] * values.ndim, tf.as_dtype(values.dtype))
            for name, values in self._batch(np.zeros(1, np.int64)).items()
        }
        if batching.has_few_shapes:
            self._compute = compiled(compute, inference_form())
        else:
            self._compute = tf.function(compute, [signature], autograph=False)

    def __iter__(self) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield the rows of a batch, int [n], and the result of `compute`."""
        done = 0
        # A row of the file is done when the last of its windows is.
        unread = np.bincount(self._owners, minlength=self._rows)
        at_once = operations_at_once()
        outputs = map_ahead(self._outputs, self._batches, threads=at_once, depth=at_once)
        for chosen, computed in zip(self._batches, outputs, strict=True):
            yield chosen, computed
            np.subtract.at(unread, self._owners[chosen], 1)
            done += int((unread[np.unique(self._owners[chosen])] == 0).sum())
            self._console.progress(Advance.counted(self._action, done, len(unread)))

    def in_row_order(self, parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Join arrays of all batches, in the order they were yielded, to [rows, …] by name."""
        order = np.concatenate(self._batches)
        joined = {}
        for name in parts[0]:
            values = np.concatenate([part[name] for part in parts])
            joined[name] = np.empty_like(values)
            joined[name][order] = values
        return joined

    def _outputs(self, chosen: np.ndarray) -> Any:
        return self._compute(
            {name: tf.constant(values) for name, values in self._batch(chosen).items()}
        )

    def _batch(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        padding = self._batching.padding(self._data.rows.lengths[chosen])
        return self._data.batch(chosen, **padding)


class Evaluator:
    """Measures a model on one data set; made once, called after every epoch.

    Every process runs the whole data set on one device, so all workers know the same metrics
    without an exchange.
    """

    def __init__(
        self, task: Task, model: Any, data: TaskData, batching: Batching, console: Console
    ):
        self._task = task
        self._model = model
        self._data = data
        rows = len(data.source)
        self._forward = ForwardPass(
            self._outputs_and_sums, data, batching, rows=rows, console=console, action=EVALUATING
        )

    def run(self) -> TaskResults:
        """Return metrics and predictions, with the mean `loss` if some row has a target."""
        reduced, loss = self._forward_all()
        return self._measured(self._task, reduced, loss)

    def predict(self) -> dict[str, Any]:
        """Return the predictions by output name, [rows] each."""
        reduced, _ = self._forward_all()
        return self._task.predict(self._data, reduced)

    def fit_and_run(self) -> tuple[Task, TaskResults]:
        """Fit the task, see `Task.fitted`; return it and the results of `run` with it."""
        reduced, loss = self._forward_all()
        fitted = self._task.fitted(*self._data.averaged(reduced))
        return fitted, self._measured(fitted, reduced, loss)

    def _forward_all(self) -> tuple[dict[str, np.ndarray], float | None]:
        """Return the reduced outputs in row order, and the mean loss.

        The loss is None if no row has a target.
        """
        reduced: list[dict[str, np.ndarray]] = []
        losses: dict[str, np.ndarray] = {}
        for chosen, (outputs, sums) in self._forward:
            # Sums of many batches lose digits in float32.
            for term, pair in sums.items():
                losses[term] = losses.get(term, 0.0) + pair.numpy().astype(np.float64)
            arrays = {name: values.numpy()[: len(chosen)] for name, values in outputs.items()}
            reduced.append(self._task.reduce(self._data, chosen, arrays))
        loss = None
        if all(weight for _, weight in losses.values()):
            loss = float(sum(total / weight for total, weight in losses.values()))
        return self._forward.in_row_order(reduced), loss

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


class FinetuningInputs:
    """Training batches of rows of similar lengths, or of any rows if the loss compares them.

    The batches of an epoch depend only on the seed and the epoch, so a resumed run can begin at any
    step.

    Args:
        data: the training rows.
        batch_size: rows of a step.
        row_multiple: divisor of the rows of a batch (replicas x micro-batches); rows of weight 0
            fill a batch up.
        length_multiple: multiples of tokens to pad to, see `Lengths`.
        max_seq_length: tokens of the longest row, [CLS] and [SEP] included.
        pad_id: id of [PAD].
        seed: random seed of the order of the rows.
    """

    def __init__(
        self,
        data: TaskData,
        *,
        batch_size: int,
        row_multiple: int,
        length_multiple: Lengths,
        max_seq_length: int,
        pad_id: int,
        seed: int,
    ):
        self._data = data
        self._batch_size = batch_size
        self._rows = -(-batch_size // row_multiple) * row_multiple
        self._length_multiple = length_multiple
        self._max_seq_length = max_seq_length
        self._pad_id = pad_id
        self._seed = seed
        self._lengths = data.rows.lengths
        self._sorted_by = np.zeros_like(self._lengths) if data.compares_rows else self._lengths
        self.steps_per_epoch = -(-len(data.rows) // batch_size)

    def batches(self, first_step: int) -> tf.data.Dataset:
        """Yield endless batches from a step on.

        Returns:
            A data set of dicts: int32 [rows, length] and targets, as `TaskData.batch` makes them.
        """
        signature = {
            name: tf.TensorSpec(
                (self._rows, *(None for _ in values.shape[1:])), tf.as_dtype(values.dtype)
            )
            for name, values in self._batch(np.zeros(1, np.int64)).items()
        }
        return tf.data.Dataset.from_generator(
            functools.partial(self._generate, first_step), output_signature=signature
        )

    def position(self, first_step: int) -> dict[str, int]:
        """Return epoch and batch where a step starts, and number and checksum of the rows.

        A checkpoint keeps it: a run must not resume on other rows.
        """
        epoch, batch = divmod(first_step, self.steps_per_epoch)
        return {
            "epoch": epoch,
            "batch": batch,
            "rows": len(self._data.rows),
            "checksum": self._checksum,
        }

    @functools.cached_property
    def _checksum(self) -> int:
        checksum = zlib.crc32(np.ascontiguousarray(self._data.rows.ids).data)
        for values in (*self._data.targets.values(), *self._data.token_targets.values()):
            checksum = zlib.crc32(np.ascontiguousarray(values).data, checksum)
        return checksum

    def _generate(self, first_step: int) -> Iterator[dict[str, np.ndarray]]:
        epoch, skipped = divmod(first_step, self.steps_per_epoch)
        while True:
            order = epoch_batches(
                self._sorted_by, batch_size=self._batch_size, seed=self._seed, epoch=epoch
            )
            for chosen in order[skipped:]:
                yield self._batch(chosen)
            epoch += 1
            skipped = 0

    def _batch(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        length = padded_length(
            self._lengths[chosen], self._length_multiple, most=self._max_seq_length
        )
        return self._data.batch(chosen, length=length, pad_id=self._pad_id, batch_size=self._rows)

"""The interface of a task to the training loop: a loss, and input with an exact position."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import tensorflow as tf

Batch = dict[str, tf.Tensor]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossParts:
    """Sums over the rows of one batch; the loop adds them up and divides at the end.

    Nothing here is a mean: a mean of means is wrong as soon as two replicas, or two parts of an
    accumulated batch, hold different numbers of masked positions.

    Attributes:
        losses: by term, the sum of weighted losses, float32 []. The training loss is the sum over
            the terms of `losses[term] / weights[term]`, both summed over the global batch, with
            the weights of `TaskLoss.weights`. A term's name is its name in metrics.jsonl
            (`mlm_loss`, `nsp_loss`); a task with one term calls it `loss`.
        metrics: by name in metrics.jsonl, (sum, weight), each float32 []; their quotient is logged
            (`mlm_accuracy`: right predictions, predictions).
    """

    losses: dict[str, tf.Tensor]
    metrics: dict[str, tuple[tf.Tensor, tf.Tensor]] = dataclasses.field(default_factory=dict)


class TaskLoss(Protocol):
    """The loss of a task; the same object serves training and evaluation.

    Both methods are traced into TensorFlow graphs, possibly compiled by XLA and run by several
    replicas: they must be pure, and use TensorFlow's own control flow, since autograph is off.
    """

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Divisor of each summed loss term of a batch, float32 [], without running the model.

        The sum of the masked positions' weights for the masked-LM loss, the number of rows for a
        mean over rows. Rows that only fill up a batch weigh 0.
        """
        ...

    def __call__(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> LossParts:
        """Runs the model and sums up the losses and metrics of a batch.

        `dropout_key` is int32 [2], another one for every (seed, step, micro-batch, replica); None
        when `training` is False.
        """
        ...


class TrainingInputs(Protocol):
    """Training batches as a pure function of the number of steps done so far, for exact resume."""

    def batches(self, first_step: int) -> tf.data.Dataset:
        """An endless dataset of whole batches, one per step, starting at step `first_step`.

        Every element is a `Batch` whose number of rows is a multiple of replicas x accumulation
        steps (fill up with rows of weight 0); lengths may differ from batch to batch. It holds
        `input_mask` [rows, length], 1 on tokens and 0 on padding, from which examples and tokens
        are counted; where rows hold several examples also `sequence_ids` [rows, length], 1, 2, …
        on the tokens of each and 0 on padding, and `position_ids` [rows, length], 0, 1, 2, … on
        the tokens of each; with a masked-LM head `masked_lm_weights`, above 0 on predictions.
        Batches before `first_step` are not read again.
        """
        ...

    def position(self, first_step: int) -> dict[str, int]:
        """Where step `first_step` starts in the data, for messages and for checks.

        Checkpoints keep it; resuming with another position for the same step is an error.
        """
        ...

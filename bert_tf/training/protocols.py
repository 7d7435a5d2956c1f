"""The interface of a task to the training loop: a loss, and input with an exact position."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import tensorflow as tf

# Tensors by name, whose first axis is the row.
Batch = dict[str, tf.Tensor]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossParts:
    """Sums over the rows of one batch; the loop adds them up and divides at the end.

    Nothing here is a mean: a mean of means is wrong as soon as two replicas, or two parts of an
    accumulated batch, hold different numbers of masked positions.

    Attributes:
        losses: by term, the sum of weighted losses, float32 []. The training loss is the sum over
            the terms of `losses[term] / weights[term]`, both summed over the global batch, with the
            weights of `TaskLoss.weights`. A term's name is its name in metrics.jsonl (`mlm_loss`,
            `nsp_loss`); a task with one term calls it `loss`.
        metrics: by name in metrics.jsonl, (sum, weight), each float32 []; their quotient is logged.
            Example: `mlm_accuracy` is (number of right predictions, number of predictions).
    """

    losses: dict[str, tf.Tensor]
    metrics: dict[str, tuple[tf.Tensor, tf.Tensor]] = dataclasses.field(default_factory=dict)


class TaskLoss(Protocol):
    """The loss of a task; the same object serves training and evaluation.

    Both methods are traced into TensorFlow graphs, possibly compiled by XLA and run by several
    replicas: they must be pure, and use TensorFlow's own control flow, since autograph is off.
    """

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Return the divisor of each summed loss term, float32 [], without running the model.

        The sum of the masked positions' weights for the masked-LM loss, the number of rows for a
        mean over rows. Rows that only fill up a batch weigh 0.
        """
        ...

    def __call__(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> LossParts:
        """Run the model and sum up the losses and metrics of a batch.

        Args:
            model: the Keras model.
            batch: tensors by name, whose first axis is the row.
            training: whether dropout is applied.
            dropout_key: int32 [2], different for every (seed, step, micro-batch, replica); None if
                `training` is False. Must be passed on to the model.
        """
        ...


class TrainingInputs(Protocol):
    """Training batches as a pure function of the number of steps done so far, for exact resume."""

    def batches(self, first_step: int) -> tf.data.Dataset:
        """Return an endless dataset of whole batches, one per step, starting at step `first_step`.

        Every element is a `Batch` whose number of rows is a multiple of replicas x accumulation
        steps (fill up with rows of weight 0); lengths may differ from batch to batch. Batches
        before `first_step` must not be read again.

        Every batch has:
        - `input_mask` [rows, length]: 1 on tokens and 0 on padding; examples and tokens are counted
          from it.
        - `sequence_ids` [rows, length], only if rows hold several examples: 1, 2, … on the tokens
          of each example and 0 on padding.
        - `position_ids` [rows, length], only if rows hold several examples: 0, 1, 2, … on the
          tokens of each example.
        - `masked_lm_weights`, only with a masked-LM head: above 0 on predictions.
        """
        ...

    def position(self, first_step: int) -> dict[str, int]:
        """Return where step `first_step` starts in the data, for messages and for checks.

        Checkpoints keep it. If a resumed run finds another position for the same step, its data
        have changed, which is an error.
        """
        ...

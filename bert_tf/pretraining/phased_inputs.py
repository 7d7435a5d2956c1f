"""The input of a run that goes through several data sets, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.training.plan.protocols import TrainingInputs
from bert_tf.training.plan.timeline import phase_ends, phase_of


class PhasedInputs:
    """Joins the inputs of phases; a `bert_tf.training.plan.protocols.TrainingInputs`.

    Args:
        inputs: of every phase.
        steps: of every phase.
    """

    def __init__(self, inputs: Sequence[TrainingInputs], steps: Sequence[int]):
        self._inputs = inputs
        self._ends = phase_ends(list(steps))
        self._starts = [0, *self._ends[:-1]]

    def batches(self, first_step: int) -> tf.data.Dataset:
        """Endless batches of the phase that a step belongs to, from that step."""
        phase = phase_of(self._ends, first_step)
        return self._inputs[phase].batches(first_step - self._starts[phase])

    def position(self, first_step: int) -> dict[str, int]:
        """The phase, and where in its data a step starts."""
        phase = phase_of(self._ends, first_step)
        position = self._inputs[phase].position(first_step - self._starts[phase])
        return {"phase": phase, **position}

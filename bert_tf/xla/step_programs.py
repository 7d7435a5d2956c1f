"""Several training steps in one program of XLA.

A step on one device is a program. Between two programs the GPU waits for the host to launch the
next one and to hand over a batch, a few milliseconds of every step. So up to `STEPS_PER_PROGRAM`
batches are stacked, and a loop inside one program runs the steps, with the variables in place.

Properties:
    Each step is the same computation as in a program of one, on the same batch, in the same order:
    the number of steps in a call changes no numbers. The loop counts to an argument of the program,
    so a call with fewer steps, before a log line, checkpoint or evaluation, compiles nothing more.
    While a program runs, tf.data prepares the batches of the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# A launch is some 30 microseconds to a few milliseconds of host time per step; spread over eight
# steps it is below a per cent of a step of BERT base. More steps only make batches to stack larger.
STEPS_PER_PROGRAM = 8


class StepPrograms:
    """Runs steps by a program that XLA compiles.

    Args:
        step: of a batch, number of the step, learning rate and number of micro-batches; returns
            float32 [numbers] to log.
    """

    def __init__(self, step: Callable[..., tf.Tensor]):
        self._step = step
        self._program = tf.function(self._steps, autograph=False, jit_compile=True)

    @staticmethod
    def can_stack(batches: Any) -> bool:
        """Tell whether all batches of an iterator have the same static shapes."""
        specs = tf.nest.flatten(batches.element_spec)
        return all(spec.shape.is_fully_defined() for spec in specs)

    def run(
        self,
        batches: Any,
        *,
        first_step: tf.Tensor,
        count: tf.Tensor,
        learning_rates: tf.Tensor,
        micro_batches: int,
    ) -> tf.Tensor:
        """Run steps on the next batches, inside a TensorFlow function.

        Args:
            batches: iterator of batches, for which `can_stack` holds.
            first_step: int32 [], number of the first step.
            count: int32 [], how many steps to run.
            learning_rates: float32 [at least count], in a multiple of `STEPS_PER_PROGRAM`.

        Returns:
            float32 [count, numbers], of each step.
        """

        def add_program(done: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            taken = tf.minimum(STEPS_PER_PROGRAM, count - done)
            with tf.device("CPU"):  # a copy to the GPU for each input of a program, not of a step
                stacked = _next_stacked(batches, taken)
            made = self._program(
                stacked,
                taken,
                first_step + done,
                learning_rates[done : done + STEPS_PER_PROGRAM],
                micro_batches,
            )
            return done + taken, rows.write(done // STEPS_PER_PROGRAM, made)

        programs = -(-count // STEPS_PER_PROGRAM)
        _, rows = tf.while_loop(
            lambda done, _: done < count,
            add_program,
            (tf.constant(0), tf.TensorArray(tf.float32, size=programs)),
        )
        return rows.concat()[:count]

    def _steps(
        self,
        stacked: dict[str, tf.Tensor],
        taken: tf.Tensor,
        first_step: tf.Tensor,
        learning_rates: tf.Tensor,
        micro_batches: int,
    ) -> tf.Tensor:
        def add_step(index: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            batch = {name: tensor[index] for name, tensor in stacked.items()}
            row = self._step(batch, first_step + index, learning_rates[index], micro_batches)
            return index + 1, rows.write(index, row)

        _, rows = tf.while_loop(
            lambda index, _: index < taken,
            add_step,
            (tf.constant(0), tf.TensorArray(tf.float32, size=STEPS_PER_PROGRAM)),
        )
        return rows.stack()


def _next_stacked(batches: Any, taken: tf.Tensor) -> dict[str, tf.Tensor]:
    """Stack the next batches to [STEPS_PER_PROGRAM, ...]; after `taken` of them, zeros."""
    spec = batches.element_spec
    arrays = {
        name: tf.TensorArray(each.dtype, size=STEPS_PER_PROGRAM, element_shape=each.shape)
        for name, each in spec.items()
    }

    def add_batch(
        index: tf.Tensor, arrays: dict[str, tf.TensorArray]
    ) -> tuple[tf.Tensor, dict[str, tf.TensorArray]]:
        batch = batches.get_next()
        return index + 1, {name: arrays[name].write(index, batch[name]) for name in arrays}

    _, arrays = tf.while_loop(
        lambda index, _: index < taken, add_batch, (tf.constant(0), arrays), parallel_iterations=1
    )
    stacked = {name: array.stack() for name, array in arrays.items()}
    for name, tensor in stacked.items():
        tensor.set_shape([STEPS_PER_PROGRAM, *spec[name].shape])
    return stacked

"""A task for the loop that is traced in a second: a sum of four numbers, with weights a row."""

from __future__ import annotations

import dataclasses
import io
import math

import keras
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.loop import TrainingLoop
from bert_tf.training.optimizers import AdamW, Lamb
from bert_tf.training.protocols import LossParts
from bert_tf.training.timeline import LoopSettings, PhaseSettings

ROWS = 8
PHASE_KEYS = {field.name for field in dataclasses.fields(PhaseSettings)}


class SquaredError:
    def weights(self, batch):
        return {"loss": tf.reduce_sum(batch["weights"])}

    def __call__(self, model, batch, *, training, dropout_key):
        predicted = tf.cast(model(batch["numbers"], training=training)[:, 0], tf.float32)
        errors = predicted - batch["sums"]
        if training:
            errors += 0.1 * tf.random.stateless_normal(tf.shape(errors), dropout_key) * self.noise
        return LossParts(
            losses={"loss": tf.reduce_sum(batch["weights"] * errors**2)},
            metrics={
                "absolute_error": (
                    tf.reduce_sum(batch["weights"] * tf.abs(errors)),
                    tf.reduce_sum(batch["weights"]),
                )
            },
        )

    def __init__(self, noise: float = 0.0):
        self.noise = noise


class Numbers:
    """Batches by the step number; from step `bad_from` on they hold NaN."""

    def __init__(self, bad_from: int | None = None, rows: int = 10**6, batch_rows: int = ROWS):
        self.bad_from = bad_from
        self.rows = rows
        self.batch_rows = batch_rows

    def position(self, first_step):
        return {"row": first_step * self.batch_rows, "rows": self.rows}

    def batches(self, first_step):
        def batch(step):
            step = tf.cast(step, tf.int32)
            numbers = tf.random.stateless_uniform([self.batch_rows, 4], [3, step])
            if self.bad_from is not None:
                numbers = tf.where(step >= self.bad_from, math.nan, numbers)
            return {
                "numbers": numbers,
                "sums": tf.reduce_sum(numbers, axis=1),
                "weights": tf.range(self.batch_rows, dtype=tf.float32),
                "input_mask": tf.ones([self.batch_rows, 4], tf.int32),
            }

        return tf.data.Dataset.range(first_step, 10**9).map(batch)


def make_loop(
    strategy=None,
    *,
    run_directory=None,
    inputs=None,
    noise=0.0,
    console=None,
    evaluate=None,
    policy="float32",
    use_xla=False,
    shards=1,
    units=8,
    optimizer="adamw",
    **settings,
) -> TrainingLoop:
    """Return the loop of this task; the same initial weights every time.

    The layers are float32 under any `policy`, which decides on loss scaling.
    """
    strategy = strategy or tf.distribute.get_strategy()
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.layers.Dense(
                    units, activation="tanh", kernel_initializer=keras.initializers.GlorotUniform(1)
                ),
                keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(2)),
            ]
        )
        model.build((None, 4))
        made = {"adamw": AdamW, "lamb": Lamb}[optimizer](
            beta_1=0.9, beta_2=0.999, epsilon=1e-6, weight_decay=0.01
        )
    phase = {"steps": 12, "warmup_steps": 3, "peak_learning_rate": 1e-2}
    phase |= {name: settings.pop(name) for name in PHASE_KEYS & settings.keys()}
    values = {
        "phases": (PhaseSettings(**phase),),
        "log_every": 1,
        "checkpoint_minutes": 0.0,
        "steps_per_call": 4,
        **settings,
    }
    return TrainingLoop(
        model=model,
        loss=SquaredError(noise),
        optimizer=made,
        inputs=inputs or Numbers(),
        strategy=strategy,
        settings=LoopSettings(**values),
        run_directory=run_directory,
        arithmetic=Arithmetic(precision=PrecisionPolicy(policy, use_xla), shards=shards),
        console=console or Console(io.StringIO()),
        evaluate=evaluate,
    )

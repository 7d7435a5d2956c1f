"""How long a step of pretraining takes on this machine, from steps of a part of its batch."""

from __future__ import annotations

import dataclasses
import io
import time

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.models.model_flops import ModelFlops
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.pretraining.step_trial import StepShape, steps_of
from bert_tf.training.devices.strategy import make_strategy
from bert_tf.training.run.arithmetic import BatchRows, settle_arithmetic

# Operations of a step that is timed: half a second at 200 GFLOP/s. Larger batches take
# proportionally longer.
_MOST_FLOPS = 1e11
_LEAST_ROWS, _LEAST_STEPS = 4, 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredRate:
    """Steps of pretraining as they run on this machine.

    Attributes:
        seconds: of a step with the whole batch.
        start_seconds: to build the model and compile the first step.
        count: steps that were timed.
        precision: of the layers.
    """

    seconds: float
    start_seconds: float
    count: int
    precision: str


def measure_rate(
    config: TrainConfig, model: BertConfig, shape: StepShape, seconds: float
) -> MeasuredRate:
    """Times steps of a model with random weights on full sequences of random tokens.

    To be called before TensorFlow runs anything, since it settles how cores are used.

    Args:
        config: the run's; precision and XLA are as it asks for.
        model: its shape.
        shape: of the run's steps.
        seconds: how long steps are timed; two are in any case, and compiling comes on top.
    """
    begin = time.monotonic()
    quiet = Console(io.StringIO())
    whole = step_flops(model, shape)
    rows = min(shape.rows, max(_LEAST_ROWS, int(shape.rows * _MOST_FLOPS / whole) // 4 * 4))
    part = dataclasses.replace(shape, rows=rows)
    arithmetic = settle_arithmetic(
        config,
        [BatchRows(batch=rows, micro_batches=1, is_filled_up=False)],
        static_shapes=True,
        strategy=make_strategy(config.strategy, config.tpu_address, quiet),
        console=quiet,
    )
    run = steps_of(model, arithmetic, part)
    run(1)  # traces and compiles
    count, start = 0, time.monotonic()
    while count < _LEAST_STEPS or time.monotonic() - start < seconds:
        run(1)
        count += 1
    rate = count * step_flops(model, part) / (time.monotonic() - start)
    return MeasuredRate(
        seconds=whole / rate,
        start_seconds=start - begin,
        count=count,
        precision=arithmetic.precision.policy.removeprefix("mixed_"),
    )


def step_flops(model: BertConfig, shape: StepShape) -> float:
    """Operations of a step, see `ModelFlops.flops`."""
    work = ModelFlops.of_encoder(model, reads_all_tokens=BertPretrainingModel.reads_all_tokens)
    flops = work.flops(
        tokens=shape.length, examples=1, squared_lengths=shape.length**2,
        predictions=shape.predictions,
    )  # fmt: skip
    return shape.rows * float(flops)

"""How the steps of a run are computed: decided when it starts, and kept for when it is resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.console import Console
from bert_tf.base.sealed_json import read_if_sound, sealed
from bert_tf.config.sections.loop import LoopSection
from bert_tf.training.devices.cores import divide_cores_among_parts, row_shards
from bert_tf.training.devices.precision import PrecisionPolicy, choose_precision

ARITHMETIC_FILE = "arithmetic.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchRows:
    """The rows of a batch, as far as they decide in how many parts it may be computed.

    Attributes:
        batch: rows; they are filled up to whole parts where `is_filled_up`.
        micro_batches: that the batch is computed in, one after the other.
        is_filled_up: whether rows without weight may be added.
    """

    batch: int
    micro_batches: int
    is_filled_up: bool

    def shards(self) -> int:
        """Parts of each micro-batch; 1 where the rows cannot be divided."""
        shards = row_shards(self.batch // self.micro_batches)
        divisible = self.batch % (self.micro_batches * shards) == 0
        return shards if self.is_filled_up or divisible else 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """How steps are computed.

    Attributes:
        precision: of the layers, and whether XLA compiles the step.
        shards: parts of a batch that are computed side by side, see `devices.cores`.
    """

    precision: PrecisionPolicy
    shards: int


def settle_arithmetic(
    config: LoopSection,
    rows: Iterable[BatchRows],
    *,
    static_shapes: bool,
    strategy: tf.distribute.Strategy,
    console: Console,
) -> Arithmetic:
    """Decides how the steps of a run are computed, and has TensorFlow run them so.

    To be called before TensorFlow runs anything, which settles how it uses the cores. A run that is
    resumed continues as `keep_arithmetic` has kept.

    Args:
        config: of the run.
        rows: of the batches of every phase; none where the loss compares the rows of a batch.
        static_shapes: whether all batches have one shape.
        strategy: of the run.
        console: where the decision is reported.
    """
    is_kept = config.strategy == "default"
    kept = read_if_sound(Path(config.output) / ARITHMETIC_FILE) if is_kept else None
    if kept is not None:
        arithmetic = Arithmetic(
            precision=PrecisionPolicy(kept["policy"], kept["use_xla"]), shards=kept["shards"]
        )
        console.info(f"arithmetic as this run began with: {_described(arithmetic)}")
    else:
        precision = choose_precision(
            config.precision,
            config.xla,
            static_shapes=static_shapes,
            strategy=strategy,
            console=console,
        )
        may_divide = is_kept and not precision.use_xla
        shards = min((phase.shards() for phase in rows), default=1) if may_divide else 1
        arithmetic = Arithmetic(precision=precision, shards=shards)
    if arithmetic.shards > 1:
        divide_cores_among_parts()
    return arithmetic


def keep_arithmetic(config: LoopSection, arithmetic: Arithmetic) -> None:
    """Writes the decision into the directory of a run on one device, when it has something to keep.

    Other instructions would change a resumed run's losses and, where rows are packed, its batches.
    """
    if config.strategy != "default":
        return
    path = Path(config.output) / ARITHMETIC_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {**dataclasses.asdict(arithmetic.precision), "shards": arithmetic.shards}
    write_text_atomically(path, sealed(document))


def _described(arithmetic: Arithmetic) -> str:
    precision = arithmetic.precision
    parts = f", batches in {arithmetic.shards} parts" if arithmetic.shards > 1 else ""
    return (
        f"{precision.policy.removeprefix('mixed_')}, "
        f"{'with' if precision.use_xla else 'without'} XLA{parts}"
    )

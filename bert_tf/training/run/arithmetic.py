"""How the steps of a run are computed: decided when it starts, and kept for when it is resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.files import write_text_atomically
from bert_tf.base.json_files import read_if_sound, sealed
from bert_tf.config.sections.loop import LoopSection
from bert_tf.cpu.cores import divide_cores_among_parts, row_shards
from bert_tf.training.devices.precision import (
    Arithmetic,
    PrecisionPolicy,
    choose_precision,
    has_accelerator,
)

ARITHMETIC_FILE = "arithmetic.json"
# Of the expected way's seconds: noise is to choose between no two ways that are equally fast.
_CLEARLY = 0.95


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


# Seconds of a step, computed in each of several ways.
StepTrial = Callable[[Sequence[Arithmetic]], list[float]]


def settle_arithmetic(
    config: LoopSection,
    rows: Iterable[BatchRows],
    *,
    static_shapes: bool,
    strategy: tf.distribute.Strategy,
    console: Console,
    trial: StepTrial | None = None,
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
        trial: measures a step on processors, where the config leaves precision and XLA open; None
            for the way that is the fastest by the processor's instructions.
    """
    is_kept = config.strategy == "default"
    kept = read_if_sound(Path(config.output) / ARITHMETIC_FILE) if is_kept else None
    if kept is not None:
        arithmetic = Arithmetic(
            precision=PrecisionPolicy(
                kept["policy"], kept["use_xla"], kept.get("use_kernels", False)
            ),
            shards=kept["shards"],
        )
        console.info(f"arithmetic as this run began with: {arithmetic}")
    else:
        precision = choose_precision(
            config.precision,
            config.xla,
            static_shapes=static_shapes,
            strategy=strategy,
            console=console,
        )
        divided = min((phase.shards() for phase in rows), default=1)
        shards = divided if is_kept and not precision.use_xla else 1
        arithmetic = Arithmetic(precision=precision, shards=shards)
        is_open = config.precision == config.xla == "auto"
        if trial is not None and is_kept and is_open and not has_accelerator():
            arithmetic = _fastest(arithmetic, trial, shards=divided, console=console)
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


def candidate_ways(*, shards: int) -> list[Arithmetic]:
    """The ways that a trial compares on processors, for batches of one shape.

    Args:
        shards: parts of a batch in those without XLA.
    """
    return [
        Arithmetic(
            precision=PrecisionPolicy(policy, use_xla, use_kernels=not use_xla),
            shards=1 if use_xla else shards,
        )
        for policy in ("mixed_bfloat16", "float32")
        for use_xla in (False, True)
    ]


def _fastest(
    expected: Arithmetic, trial: StepTrial, *, shards: int, console: Console
) -> Arithmetic:
    """The fastest way in a trial; the expected one, unless another is clearly faster."""
    ways = candidate_ways(shards=shards)
    console.info("measuring how a step is computed fastest here")
    seconds = dict(zip(ways, trial(ways), strict=True))
    for way in ways:
        console.info(f"  {way}: {1000 * seconds[way]:,.0f} ms")
    fastest = min(ways, key=seconds.__getitem__)
    chosen = fastest if seconds[fastest] < _CLEARLY * seconds[expected] else expected
    console.info(f"chosen: {chosen}")
    return chosen

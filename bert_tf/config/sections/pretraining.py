"""The section of `train`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Annotated

from bert_tf.config.bert import SIZES
from bert_tf.config.section import (
    BatchSize,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    Section,
    advanced,
    option,
    optional,
    repeatable,
)
from bert_tf.config.sections.loop import LoopSection
from bert_tf.config.sections.masking import (
    SUM_TOLERANCE,
    NgramSize,
    masking_option,
    replacement_faults,
)
from bert_tf.config.values import Bounds

DEFAULT_STEPS = 10_000
MAX_STEPS = 1_000_000_000
_UNMASKED = " in unmasked records"
_SET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
MLM_LOSS = "mlm_loss"
PAIR_ACCURACY = "pair_accuracy"


class TrainingPhase(Section, section_name="phases"):
    """A part of a pretraining run with its own data; an item of `train.phases`."""

    data: str | None = optional("directory of TFRecords made by preprocess", reads="folder")
    steps: Annotated[int, Bounds(0, MAX_STEPS)] = option("training steps of the phase", 0)
    fraction: Fraction = option("fraction of train.steps, instead of steps", 0.0)
    batch_size: BatchSize | None = optional("sequences per step (default: train.batch_size)")
    gradient_accumulation_steps: PositiveInt | None = optional(
        "micro-batches per batch (default: train.gradient_accumulation_steps)"
    )
    learning_rate: PositiveFraction | None = optional(
        "peak learning rate of a new schedule (warmup and decay) for the phase (default: "
        "continue the schedule)"
    )
    warmup_proportion: Fraction = option(
        "fraction of the steps for warmup, if the phase has its own learning_rate", 0.1
    )

    def faults(self) -> Iterator[str]:
        if not self.data:
            yield "data: is missing: directory of TFRecords"
        if bool(self.steps) == bool(self.fraction):
            yield "steps: give either steps or fraction, above 0"


class TrainConfig(LoopSection, section_name="train"):
    """Pretrains BERT on TFRecords with masked-LM and next-sentence losses."""

    one_of = ("size", "model_config", "init")

    data: str | None = option(
        "directory of TFRecords made by preprocess", alternative="phases", reads="folder"
    )
    phases: tuple[TrainingPhase, ...] = advanced(
        "training phases with their own data, in order, instead of data: a list of mappings with "
        "the keys " + ", ".join(field.name for field in dataclasses.fields(TrainingPhase)),
        (),
    )
    size: str | None = optional(
        "model size, as layers x hidden size: tiny (2 x 128), mini (4 x 256), small (4 x 512), "
        "medium (8 x 512), base (12 x 768), large (24 x 1024)",
        choices=tuple(SIZES),
        common=True,
    )
    model_config: str | None = optional(
        "config.json of HuggingFace or Google, instead of --size", common=True, reads="file"
    )
    init: str | None = optional(
        "model directory to initialize the weights from", common=True, reads="model"
    )
    steps: Annotated[int, Bounds(1, MAX_STEPS)] = optional(
        f"total training steps (default: {DEFAULT_STEPS:,}, or the sum of the phases)"
    )
    max_minutes: NonNegativeFloat = advanced(
        "time budget in minutes, over which the learning rate decays (0: no limit)", 0.0
    )
    batch_size: BatchSize = option("sequences per step, across all replicas", 32)
    gradient_accumulation_steps: PositiveInt = option("micro-batches per batch, to save memory", 1)
    masking: str = masking_option(
        "masking", where=" in unmasked records (preprocess.masking=dynamic)"
    )
    masked_lm_prob: PositiveFraction = masking_option("masked_lm_prob", where=_UNMASKED)
    whole_word_mask: bool = masking_option("whole_word_mask", where=_UNMASKED)
    max_ngram_size: NgramSize = masking_option("max_ngram_size")
    mask_replacements: tuple[Fraction, ...] = masking_option("mask_replacements", where=_UNMASKED)
    random_tokens: str = masking_option("random_tokens", where=_UNMASKED)
    masking_schedule: tuple[PositiveFraction, ...] = advanced(
        f"fractions of tokens to mask{_UNMASKED} at the first and at the last step, with a linear "
        "change in between, instead of masked_lm_prob: [0.3, 0.15]",
        (),
    )
    packing: str = advanced(
        "pack several short sequences into a row; a step still has batch_size sequences on "
        "average (auto: if this saves at least 1/6 of the rows)",
        choices=("auto", "on", "off"),
    )
    learning_rate: PositiveFraction = option("peak learning rate", 1e-4)
    warmup_steps: NonNegativeInt = option("steps of linear warmup (0: use warmup_proportion)", 0)
    warmup_proportion: Fraction = advanced(
        "fraction of the steps for warmup if warmup_steps is 0", 0.1
    )
    eval_every: PositiveInt = advanced("steps between evaluations on the eval shards", 1000)
    eval_examples: NonNegativeInt = advanced("examples per evaluation (0: all)", 2000)
    eval_likelihood: str | None = optional(
        "minimal pairs to evaluate on, JSON lines of sentence_good and sentence_bad: measures how "
        "often the good one is likelier (pair_accuracy)",
        reads="file",
    )
    eval: tuple[str, ...] = repeatable(
        "further records to evaluate on, NAME=DIRECTORY with eval shards of preprocess: measures "
        "NAME_mlm_loss and, with --init, by how much training has changed it; repeatable"
    )
    selection_metric: str = option(
        "metric that chooses the model in best/ and stops early: mlm_loss, NAME_mlm_loss of "
        "--eval, or pair_accuracy of --eval-likelihood",
        MLM_LOSS,
    )
    max_forgetting: NonNegativeFloat = advanced(
        "with --init and --eval: stop when the loss on one of these sets is higher than before "
        "training by this much, in nats per token (0: never)",
        0.0,
    )
    steps_per_call: Annotated[int, Bounds(0, 10_000)] = advanced(
        "training steps per tf.function call (0: automatic)", 0, affects_output=False
    )
    dry_run: bool = option(
        "show the training plan, the memory of a step, the time and, with --price-per-hour or "
        "--watts, costs, without training",
        False,
    )

    def __post_init__(self) -> None:
        if self.steps is None:
            by_steps = sum(phase.steps for phase in self.phases)
            object.__setattr__(self, "steps", by_steps or DEFAULT_STEPS)  # it is frozen

    def faults(self) -> Iterator[str]:
        named = [name for name in self.one_of if getattr(self, name)]
        if len(named) != 1:
            got = " and ".join("--" + name.replace("_", "-") for name in named) or "none of them"
            yield f"size: give exactly one of --size, --model-config and --init; got {got}"
        faults = list(_phase_faults(self)) if self.phases else []
        yield from faults
        if len(named) == 1 and not faults:
            yield from _warmup_faults(self)
        yield from replacement_faults(self)
        yield from _masking_schedule_faults(self)
        yield from _eval_faults(self)
        if self.selection_metric not in self.selection_metrics:
            yield (
                f"selection_metric: {self.selection_metric!r} is not measured; expected "
                f"{', '.join(self.selection_metrics)} ({PAIR_ACCURACY} needs --eval-likelihood, "
                "the loss on other records --eval)"
            )

    def phase_steps(self) -> tuple[int, ...]:
        """Return the steps of every phase; a single number without phases."""
        if not self.phases:
            return (self.steps,)
        if not self.phases[0].fraction:
            return tuple(phase.steps for phase in self.phases)
        fractions = [phase.fraction for phase in self.phases]
        ends = [round(self.steps * sum(fractions[:number])) for number in range(1, len(fractions))]
        ends.append(self.steps)  # exactly, though rounded fractions may add up to a bit less
        return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))

    @property
    def total_steps(self) -> int:
        return sum(self.phase_steps())

    @property
    def selection_metrics(self) -> tuple[str, ...]:
        """Metrics that can choose the best model."""
        of_sets = [loss_of(name) for name in self.eval_sets]
        return (MLM_LOSS, *of_sets, *([PAIR_ACCURACY] if self.eval_likelihood else []))

    @property
    def eval_sets(self) -> dict[str, str]:
        """Folders of further records to evaluate on, by name."""
        return dict(entry.split("=", 1) for entry in self.eval if "=" in entry)


def _phase_faults(config: TrainConfig) -> Iterator[str]:
    if config.data:
        yield "data: every phase has its own data; leave --data out"
    if config.early_stop_evals:
        yield "early_stop_evals: does not apply to a run with phases; set it to 0"
    if config.max_minutes:
        yield "max_minutes: does not apply to a run with phases, which have steps; set it to 0"
    total = sum(phase.fraction for phase in config.phases)
    by_fraction = [bool(phase.fraction) for phase in config.phases]
    if len(set(by_fraction)) > 1:
        yield "phases: give all of them steps or all of them a fraction"
    elif by_fraction[0] and abs(total - 1.0) > SUM_TOLERANCE:
        yield f"phases: the fractions add up to {total:g}; they must add up to 1"
    elif min(config.phase_steps()) < 1:
        yield f"phases: one of them has no step; the steps are {config.phase_steps()}"
    elif config.steps != config.total_steps:
        yield (
            f"steps: is {config.steps}, but the steps of the phases add up to "
            f"{config.total_steps}; leave it out"
        )


def loss_of(name: str) -> str:
    """Return the name of the metric of a set of `--eval`."""
    return f"{name}_{MLM_LOSS}"


def _eval_faults(config: TrainConfig) -> Iterator[str]:
    names = [entry.partition("=")[0] for entry in config.eval]
    for entry, name in zip(config.eval, names, strict=True):
        if not entry.partition("=")[2] or not _SET_NAME.fullmatch(name):
            yield (
                f"eval: expected NAME=DIRECTORY with a name of letters, digits and _, such as "
                f"old=data, got {entry!r}"
            )
        elif names.count(name) > 1:
            yield f"eval: has the name {name!r} twice; give each set a name of its own"
            return
    if config.max_forgetting and not (config.eval and config.init):
        yield (
            "max_forgetting: compares the sets of --eval with the model of --init; give both, or "
            "set it to 0"
        )


def _masking_schedule_faults(config: TrainConfig) -> Iterator[str]:
    if not config.masking_schedule:
        return
    if len(config.masking_schedule) != 2:
        yield (
            f"masking_schedule: has {len(config.masking_schedule)} fractions; give that of the "
            "first step and that of the last, such as [0.3, 0.15]"
        )
    if config.max_minutes:
        yield (
            "masking_schedule: needs the number of steps, which a run of max_minutes does not "
            "know; set max_minutes to 0 and give steps"
        )
    if config.masked_lm_prob != TrainConfig.masked_lm_prob:
        yield "masked_lm_prob: masking_schedule has the fractions of tokens; leave one of them out"


def _warmup_faults(config: TrainConfig) -> Iterator[str]:
    """Check that schedules are at least as long as their warmup."""
    if config.phases and config.phases[0].learning_rate is not None:
        return
    # The first schedule lasts until a phase has a learning rate, thus a schedule, of its own.
    phases_of_schedule = max(len(config.phases), 1)
    for number, phase in enumerate(config.phases):
        if phase.learning_rate is not None:
            phases_of_schedule = number
            break
    steps = sum(config.phase_steps()[:phases_of_schedule])
    if config.warmup_steps > steps:
        yield (
            f"warmup_steps: is {config.warmup_steps}, but its learning-rate schedule only has "
            f"{steps} steps; lower it, or raise steps"
        )

"""The section of `train`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.bert import SIZES
from bert_tf.config.section import Section, option
from bert_tf.config.sections.data import masking_option
from bert_tf.config.sections.loop import LoopSection

DEFAULT_STEPS = 10_000
MAX_STEPS = 1_000_000_000
_UNMASKED = " in unmasked records"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingPhase(Section):
    """A part of a pretraining run with its own data; an item of `train.phases`."""

    section_name: ClassVar[str] = "phases"

    data: str | None = option(
        "directory of TFRecords made by preprocess", default=None, reads="folder"
    )
    steps: int = option("training steps of the phase", default=0, minimum=0, maximum=MAX_STEPS)
    fraction: float = option(
        "fraction of train.steps, instead of steps", default=0.0, minimum=0.0, maximum=1.0
    )
    batch_size: int | None = option(
        "sequences per step (default: train.batch_size)", default=None, minimum=1, maximum=1_000_000
    )
    gradient_accumulation_steps: int | None = option(
        "micro-batches per batch (default: train.gradient_accumulation_steps)",
        default=None,
        minimum=1,
    )
    learning_rate: float | None = option(
        "peak learning rate of a new warm-up and decay that start with the phase (default: "
        "continue the schedule)",
        default=None,
        above=0.0,
        maximum=1.0,
    )
    warmup_proportion: float = option(
        "fraction of the steps for warm-up, if the phase has its own learning_rate",
        default=0.1,
        minimum=0.0,
        maximum=1.0,
    )

    def faults(self) -> list[str]:
        faults = [] if self.data else ["data: is missing: directory of TFRecords"]
        if bool(self.steps) == bool(self.fraction):
            faults.append("steps: give either steps or fraction, above 0")
        return faults


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig(LoopSection):
    """Pretrains BERT on TFRecords with masked-LM and next-sentence losses."""

    section_name: ClassVar[str] = "train"

    data: str | None = option(
        "directory of TFRecords made by preprocess", alternative="phases", reads="folder"
    )
    phases: tuple[TrainingPhase, ...] = option(
        "training phases with their own data, in order, instead of data: a list of mappings with "
        "the keys " + ", ".join(field.name for field in dataclasses.fields(TrainingPhase)),
        default=(),
        advanced=True,
    )
    size: str | None = option("model size", default=None, choices=tuple(SIZES), common=True)
    model_config: str | None = option(
        "config.json of HuggingFace or Google, instead of --size",
        default=None,
        common=True,
        reads="file",
    )
    init: str | None = option(
        "model directory to initialize the weights from", default=None, common=True, reads="model"
    )
    steps: int = option(
        f"total training steps (default: {DEFAULT_STEPS:,}, or the sum of the phases)",
        default=None,
        minimum=1,
        maximum=MAX_STEPS,
    )
    max_minutes: float = option(
        "time budget in minutes, over which the learning rate decays (0: no limit)",
        default=0.0,
        minimum=0.0,
        advanced=True,
    )
    batch_size: int = option(
        "sequences per step, across all replicas", default=32, minimum=1, maximum=1_000_000
    )
    gradient_accumulation_steps: int = option(
        "micro-batches per batch, to save memory", default=1, minimum=1
    )
    masking: str = masking_option(
        "masking", where=" in unmasked records (preprocess.masking=dynamic)"
    )
    masked_lm_prob: float = masking_option("masked_lm_prob", where=_UNMASKED)
    whole_word_mask: bool = masking_option("whole_word_mask", where=_UNMASKED)
    max_ngram_size: int = masking_option("max_ngram_size")
    random_tokens: str = masking_option("random_tokens", where=_UNMASKED)
    packing: str = option(
        "pack several short sequences into one row, batch_size of them per step on average "
        "(auto: if this saves at least 1/6 of the rows)",
        default="auto",
        choices=("auto", "on", "off"),
        advanced=True,
    )
    learning_rate: float = option("peak learning rate", default=1e-4, above=0.0, maximum=1.0)
    warmup_steps: int = option(
        "steps of linear warm-up (0: use warmup_proportion)", default=0, minimum=0
    )
    warmup_proportion: float = option(
        "fraction of the steps for warm-up if warmup_steps is 0",
        default=0.1,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    eval_every: int = option(
        "steps between evaluations on the eval shards", default=1000, minimum=1, advanced=True
    )
    eval_examples: int = option(
        "examples per evaluation (0: all)", default=2000, minimum=0, advanced=True
    )
    steps_per_call: int = option(
        "training steps per tf.function call (0: automatic)",
        default=0,
        minimum=0,
        maximum=10_000,
        advanced=True,
        affects_output=False,
    )
    dry_run: bool = option(
        "show the training plan, the computation of a step and its memory, without training",
        default=False,
    )

    def __post_init__(self) -> None:
        if self.steps is None:
            by_steps = sum(phase.steps for phase in self.phases)
            object.__setattr__(self, "steps", by_steps or DEFAULT_STEPS)

    def faults(self) -> list[str]:
        faults = []
        named = [name for name in ("size", "model_config", "init") if getattr(self, name)]
        if len(named) != 1:
            got = " and ".join("--" + name.replace("_", "-") for name in named) or "none of them"
            faults.append(f"size: give exactly one of --size, --model-config and --init; got {got}")
        faults += _phase_faults(self) if self.phases else []
        return faults or _warmup_faults(self)

    def phase_steps(self) -> tuple[int, ...]:
        """Steps of every phase; a single number without phases."""
        if not self.phases:
            return (self.steps,)
        if not self.phases[0].fraction:
            return tuple(phase.steps for phase in self.phases)
        fractions = [phase.fraction for phase in self.phases]
        ends = [round(self.steps * sum(fractions[: index + 1])) for index in range(len(fractions))]
        return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))

    @property
    def total_steps(self) -> int:
        return sum(self.phase_steps())


def _phase_faults(config: TrainConfig) -> list[str]:
    faults = []
    if config.data:
        faults.append("data: every phase has data of its own; leave --data out")
    if config.early_stop_evals:
        faults.append("early_stop_evals: a run with phases goes through all of them; set it to 0")
    if config.max_minutes:
        faults.append("max_minutes: a run with phases ends by its steps; set it to 0")
    by_fraction = [bool(phase.fraction) for phase in config.phases]
    if len(set(by_fraction)) > 1:
        faults.append("phases: give all of them steps or all of them a fraction")
    elif by_fraction[0] and abs(sum(phase.fraction for phase in config.phases) - 1.0) > 1e-6:
        total = sum(phase.fraction for phase in config.phases)
        faults.append(f"phases: the fractions add up to {total:g}; they must add up to 1")
    elif min(config.phase_steps()) < 1:
        faults.append(f"phases: one of them has no step; the steps are {config.phase_steps()}")
    elif config.steps != config.total_steps:
        faults.append(
            f"steps: is {config.steps}, but the steps of the phases add up to "
            f"{config.total_steps}; leave it out"
        )
    return faults


def _warmup_faults(config: TrainConfig) -> list[str]:
    """Checks that schedules are longer than their warm-up."""
    if config.phases and config.phases[0].learning_rate is not None:
        return []
    starts = [n for n, phase in enumerate(config.phases) if n and phase.learning_rate is not None]
    steps = sum(config.phase_steps()[: starts[0] if starts else None])
    if config.warmup_steps <= steps:
        return []
    return [
        f"warmup_steps: is {config.warmup_steps}, but the learning rate has {steps} steps in all "
        "to rise and decay in; lower it, or raise steps"
    ]

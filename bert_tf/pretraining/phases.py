"""The phases of a pretraining run: their data, masks, batches and learning rates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections.masking import changed_masking, masking_settings
from bert_tf.config.sections.pretraining import TrainConfig, TrainingPhase
from bert_tf.data.examples.masking import masking_rules
from bert_tf.data.records.dataset_info import PretrainingData, read_token_counts
from bert_tf.data.records.epoch_records import DynamicMasking, MaskingSchedule
from bert_tf.data.records.pretraining_inputs import PretrainingInputs
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.models.model_flops import ModelFlops
from bert_tf.training.arithmetic import BatchRows
from bert_tf.training.timeline import PhaseSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingPhase:
    """A phase, with all defaults of its config filled in.

    Attributes:
        name: beginning of messages about the phase; "" in a run of one phase.
        data: description of its records.
        steps: number of steps.
        batch_size: sequences per step.
        accumulation_steps: micro-batches of a batch.
        learning_rate: peak of a schedule that starts with the phase; None continues the last one.
        warmup_steps: steps of that schedule's warmup.
        masking_schedule: fractions of tokens to mask at the first and at the last step of the
            phase; None if it is the same at all.
    """

    name: str
    data: PretrainingData
    steps: int
    batch_size: int
    accumulation_steps: int
    learning_rate: float | None
    warmup_steps: int
    masking_schedule: tuple[float, float] | None = None

    def check_batch_size(self, replicas: int) -> None:
        """Check that replicas and accumulation divide a batch.

        Raises:
            UsageError: they do not; the message has the nearest batch size that works.
        """
        parts = self.row_multiple(replicas)
        if self.batch_size % parts:
            raise UsageError(
                f"{self.name}--batch-size {self.batch_size} cannot be divided evenly by "
                f"{replicas} replicas x {self.accumulation_steps} "
                f"accumulation steps; use {-(-self.batch_size // parts) * parts}"
            )

    def row_multiple(self, replicas: int) -> int:
        """Return the number of which the rows of a batch must be a multiple."""
        return replicas * self.accumulation_steps

    @property
    def batch_rows(self) -> BatchRows:
        """Rows of a batch.

        With packing there are fewer rows than sequences, but their number can be divided among
        micro-batches and replicas just as well.
        """
        return BatchRows(batch=self.batch_size, micro_batches=self.accumulation_steps)

    def open_inputs(
        self, config: TrainConfig, strategy: tf.distribute.Strategy, *, shards: int
    ) -> PretrainingInputs:
        """Open training batches.

        Args:
            config: config of the run.
            strategy: strategy that batches are distributed by.
            shards: parts of each micro-batch; rows are a multiple of these, too.

        Raises:
            InputError, UsageError: see `PretrainingInputs`.
        """
        return PretrainingInputs(
            self.data.paths("train"),
            self.data,
            batch_size=self.batch_size,
            seed=config.seed,
            packing=config.packing,
            row_multiple=self.row_multiple(strategy.num_replicas_in_sync) * shards,
            masking=dynamic_masking(config, self.data, self._schedule()),
        )

    def _schedule(self) -> MaskingSchedule | None:
        if self.masking_schedule is None:
            return None
        first, last = self.masking_schedule
        return MaskingSchedule(first=first, last=last, records=self.steps * self.batch_size)

    def settings(self, bert_config: BertConfig) -> PhaseSettings:
        """Return the settings of the training loop."""
        row = (self.data.max_seq_length, self.data.max_predictions_per_seq)
        return PhaseSettings(
            steps=self.steps,
            accumulation_steps=self.accumulation_steps,
            peak_learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            work=_step_flops(bert_config),
            relative_work=self.batch_size * row_flops(bert_config, *row),
        )


def _step_flops(model: BertConfig) -> ModelFlops:
    return ModelFlops.of_encoder(model, reads_all_tokens=BertPretrainingModel.reads_all_tokens)


def row_flops(model: BertConfig, length: int, predictions: int) -> float:
    """Return the operations of a step for one row.

    Args:
        model: sizes of the encoder.
        length: tokens of the row.
        predictions: masked tokens of the row.
    """
    work = _step_flops(model)
    return float(
        work.flops(tokens=length, examples=1, squared_lengths=length**2, predictions=predictions)
    )


def common_pair_task(phases: Sequence[PretrainingPhase]) -> str:
    """Return the pair task of all phases.

    Raises:
        UsageError: their records have different ones.
    """
    tasks = {phase.data.pair_task: phase.data.directory for phase in phases}
    if len(tasks) > 1:
        kinds = ", ".join(f"{task} in {directory}" for task, directory in tasks.items())
        raise UsageError(
            f"train.phases: the records differ in pair_task ({kinds}); preprocess all with the same"
        )
    return next(iter(tasks))


def pretraining_phases(
    config: TrainConfig, data: Sequence[PretrainingData]
) -> list[PretrainingPhase]:
    """Return the phases of a run; one if the config has none.

    A phase with its own learning rate starts a schedule, which the following phases share up to the
    next such one. The first phase always starts one.

    Args:
        config: config of the run.
        data: description of the records of each phase.
    """
    steps = config.phase_steps()
    phase_configs = config.phases or (TrainingPhase(data=config.data),)
    # Numbers of the later phases that start a schedule.
    later_starts = [
        number
        for number, phase in enumerate(phase_configs)
        if number > 0 and phase.learning_rate is not None
    ]
    phases = []
    for number, phase in enumerate(phase_configs):
        rate = phase.learning_rate
        warmup = round(phase.warmup_proportion * steps[number])
        if rate is None and number == 0:
            # The schedule of the run's own keys, up to the next phase that starts one.
            end = later_starts[0] if later_starts else len(phase_configs)
            rate = config.learning_rate
            warmup = config.warmup_steps or round(config.warmup_proportion * sum(steps[:end]))
        phases.append(
            PretrainingPhase(
                name=f"phase {number + 1}: " if config.phases else "",
                data=data[number],
                steps=steps[number],
                batch_size=phase.batch_size or config.batch_size,
                accumulation_steps=phase.gradient_accumulation_steps
                or config.gradient_accumulation_steps,
                learning_rate=rate,
                warmup_steps=0 if rate is None else warmup,
                masking_schedule=_part_of_schedule(config, steps, number),
            )
        )
    return phases


def _part_of_schedule(
    config: TrainConfig, steps: Sequence[int], number: int
) -> tuple[float, float] | None:
    """Return the fractions of tokens to mask at both ends of a phase; None without a schedule.

    Args:
        config: config of the run.
        steps: steps of each phase.
        number: number of the phase, from 0.
    """
    if not config.masking_schedule:
        return None
    first, last = config.masking_schedule
    begin = sum(steps[:number]) / sum(steps)
    end = sum(steps[: number + 1]) / sum(steps)
    return first + (last - first) * begin, first + (last - first) * end


def dynamic_masking(
    config: TrainConfig, data: PretrainingData, schedule: MaskingSchedule | None = None
) -> DynamicMasking | None:
    """Return how to mask the records; None if they are masked already.

    Args:
        config: config of the run.
        data: description of the records.
        schedule: fraction of tokens over the records; None for `masked_lm_prob`.

    Raises:
        UsageError: keys of masking are set for masked records, or the vocabulary has only special
            tokens.
        InputError: the token counts of the corpus are missing.
    """
    if not data.is_dynamic:
        _check_masks_are_unset(config, data)
        return None
    token_counts = None
    if config.random_tokens == "unigram":
        token_counts = read_token_counts(data.directory, data.vocab_size)
    settings = masking_settings(config)
    if schedule is not None:
        settings["masked_lm_prob"] = max(schedule.first, schedule.last)
    rules = masking_rules(
        data.masking_vocab,
        max_seq_length=data.max_seq_length,
        max_predictions_per_seq=data.max_seq_length,
        **settings,
        token_counts=token_counts,
    )
    return DynamicMasking(rules=rules, sep_id=data.masking_vocab.index("[SEP]"), schedule=schedule)


def _check_masks_are_unset(config: TrainConfig, data: PretrainingData) -> None:
    changed = changed_masking(config)
    if config.masking_schedule:
        changed.append("masking_schedule")
    if changed:
        raise UsageError(
            f"train.{changed[0]}: the records in {data.directory} are masked already; leave it "
            "out, or preprocess with --set preprocess.masking=dynamic"
        )

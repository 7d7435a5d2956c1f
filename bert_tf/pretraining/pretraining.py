"""Pretraining, from records to a model directory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from bert_tf.base.arrays import unsigned_seed
from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError, InputError, RunnerFailed
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.parsing import find_damage
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.evaluation import RecordsEvaluation
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.minimal_pairs import MinimalPairs, PairJudge
from bert_tf.pretraining.phases import PretrainingPhase
from bert_tf.pretraining.plan import PretrainingPlan, plan_pretraining
from bert_tf.training.arithmetic import keep_arithmetic
from bert_tf.training.best_model import BestModelKeeper
from bert_tf.training.loop import TrainingLoop, TrainingResult
from bert_tf.training.memory import is_out_of_memory
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.run_files import RunMirror
from bert_tf.training.throughput import measure_matmul_peak
from bert_tf.training.timeline import LoopSettings, PhasedInputs
from bert_tf.weights.model_directory import ModelDirectory, load_weights


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseResult:
    """Records that a phase has read.

    Attributes:
        steps: steps of the phase.
        sequences: sequences of all its batches, every epoch counted.
        gradient_accumulation_steps: micro-batches of a batch.
        packing: `sequences_per_row`, `packing_efficiency` and `rows_per_step`; None without
            packing.
    """

    steps: int
    sequences: int
    gradient_accumulation_steps: int
    packing: dict[str, float] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingResult:
    """Outcome of a run, and what each phase has read."""

    training: TrainingResult
    phases: list[PhaseResult]

    @property
    def sequences(self) -> int:
        """Sequences of all steps, every epoch counted."""
        return sum(phase.sequences for phase in self.phases)


def pretrain(
    config: TrainConfig,
    *,
    bert_config: BertConfig,
    data: Sequence[PretrainingData],
    vocab: list[str],
    initial: ModelDirectory | None,
    console: Console,
    pairs: MinimalPairs | None = None,
    sets: Mapping[str, PretrainingData] | None = None,
    mirror: RunMirror | None = None,
) -> PretrainingResult:
    """Train a model on masked-LM and next-sentence records, or resume an interrupted run.

    `config.output` gets checkpoints, metrics and, under `best/`, the model directory with the
    lowest masked-LM loss on the eval records of the last phase (the last model if there are none).

    Args:
        config: config of the run.
        bert_config: sizes of the model.
        data: description of the records of each phase; one item without phases.
        vocab: entries in the order of their ids.
        initial: weights to start from; None for random ones.
        console: receives progress.
        pairs: minimal pairs to evaluate on; None for none.
        sets: further records to evaluate on, by name.
        mirror: storage that receives the run after each checkpoint; None if `config.output` is its
            place.

    Raises:
        UsageError: model and data do not fit, or the batch cannot be divided among replicas.
        InputError: records are damaged, or the loss is not finite.
        RunnerFailed: a step did not fit into the memory, or another worker is gone.
        StoppedEarly: SIGTERM or Ctrl-C, after saving.
    """
    plan = plan_pretraining(config, bert_config=bert_config, data=data, console=console)
    keras.utils.set_random_seed(unsigned_seed(config.seed, 32))
    with plan.strategy.scope():
        model = BertPretrainingModel(bert_config, dtype=plan.arithmetic.precision.policy)
        model.build_weights()
    if initial is not None:
        for name in load_weights(model, initial):
            console.warn(f"{initial.path} has no {name}; it starts at random")
    console.info(f"{model.count_params():,} parameters")
    best = BestModelKeeper(
        Path(config.output) / "best",
        model,
        metric=config.selection_metric,
        vocab=vocab,
        lowercase=data[0].lowercase,
        writes=plan.writes,
    )
    evaluation = RecordsEvaluation(
        config,
        plan.phases,
        model=model,
        loss=PretrainingLoss(plan.pair_task),
        strategy=plan.strategy,
        arithmetic=plan.arithmetic,
        best=best,
        console=console,
        judge=_judge_of(pairs, model, vocab, data[0].lowercase),
        sets=sets,
    )
    if initial is not None:
        evaluation.measure_before()
    loop = _make_loop(plan, model, evaluation=evaluation, console=console, mirror=mirror)
    keep_arithmetic(config, plan.arithmetic)
    try:
        result = loop.run()
    except tf.errors.OpError as error:
        # TensorFlow reports errors of reading as its own; the inputs have the real one.
        cause: BertPipelineError | None
        cause = next((opened.failure for opened in plan.inputs if opened.failure), None)
        if cause is None:
            cause = _damaged_record(error, plan.phases)
        if cause is None and is_out_of_memory(error):
            cause = RunnerFailed(f"a step did not fit into the memory: {plan.cure}")
        raise cause or error from None
    return PretrainingResult(training=result, phases=_phase_results(plan, result.step))


def _judge_of(
    pairs: MinimalPairs | None, model: BertPretrainingModel, vocab: list[str], lowercase: Lowercase
) -> PairJudge | None:
    if pairs is None:
        return None
    tokenizer = HostTokenizer(vocab, lowercase=lowercase)
    return PairJudge(pairs, model=model, tokenizer=tokenizer)


def _make_loop(
    plan: PretrainingPlan,
    model: BertPretrainingModel,
    *,
    evaluation: RecordsEvaluation,
    console: Console,
    mirror: RunMirror | None,
) -> TrainingLoop:
    config = plan.config
    phases = plan.phases
    strategy = plan.strategy
    with strategy.scope():
        optimizer = make_optimizer(config, num_hidden_layers=model.config.num_hidden_layers)
    peak_flops = measure_matmul_peak(plan.arithmetic.precision.policy, strategy)
    if peak_flops is not None:
        console.info(f"peak: matrix products reach {peak_flops / 1e9:,.0f} GFLOP/s here")
    return TrainingLoop(
        model=model,
        loss=PretrainingLoss(plan.pair_task),
        optimizer=optimizer,
        inputs=PhasedInputs(plan.inputs, [phase.steps for phase in phases]),
        strategy=strategy,
        settings=LoopSettings.from_config(
            config,
            phases=tuple(phase.settings(model.config) for phase in phases),
            eval_every=config.eval_every,
            max_minutes=config.max_minutes,
            peak_flops=peak_flops,
            steps_per_call=config.steps_per_call,
        ),
        run_directory=Path(config.output),
        arithmetic=plan.arithmetic,
        console=console,
        evaluate=evaluation,
        mirror=mirror,
    )


def _phase_results(plan: PretrainingPlan, step: int) -> list[PhaseResult]:
    results = []
    for phase, opened in zip(plan.phases, plan.inputs, strict=True):
        steps = min(phase.steps, step)
        step -= steps
        packing: dict[str, Any] | None = None
        if opened.packing is not None:
            packing = {
                "sequences_per_row": round(opened.packing.sequences_per_row, 4),
                "packing_efficiency": round(opened.packing.packing_efficiency, 4),
                "rows_per_step": opened.rows,
            }
        results.append(
            PhaseResult(
                steps=steps,
                sequences=opened.sequences_before(steps),
                gradient_accumulation_steps=phase.accumulation_steps,
                packing=packing,
            )
        )
    return results


def _damaged_record(error: tf.errors.OpError, phases: list[PretrainingPhase]) -> InputError | None:
    """Return the error of the training record that caused an error of TensorFlow.

    None if the records are sound. Unmasked records and evaluations detect damage on reading.
    """
    if not isinstance(error, tf.errors.DataLossError | tf.errors.InvalidArgumentError):
        return None
    for phase in phases:
        if phase.data.is_dynamic:
            continue
        damage = find_damage(phase.data.paths("train"), phase.data)
        if damage is not None:
            return damage
    return None

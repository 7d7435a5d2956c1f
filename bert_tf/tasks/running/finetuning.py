"""Fine-tuning of any task: data, model, loop, evaluation after every epoch, and the best model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from bert_tf.base.arrays import unsigned_seed
from bert_tf.base.console import Console
from bert_tf.base.wording import quantity
from bert_tf.config.section import former_defaults
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.rows.encoded_rows import COMPILED_LENGTHS, Batching, Lengths
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.model_flops import ModelFlops
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import (
    FinetuningLoss,
    RowsCheck,
    Task,
    accept_any_rows,
)
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.running.batches import Evaluator, FinetuningInputs
from bert_tf.tasks.running.distillation import DistillationLoss, SoftLabels
from bert_tf.tasks.running.evaluation import EpochEvaluation, measure_best, write_profile
from bert_tf.tasks.running.finetuning_rows import FinetuningRows, read_rows
from bert_tf.tasks.running.recipe import with_recipe
from bert_tf.training.arithmetic import (
    Arithmetic,
    BatchRows,
    PrecisionPolicy,
    has_accelerator,
    keep_arithmetic,
    settle_arithmetic,
)
from bert_tf.training.best_model import BestModel, improved_at
from bert_tf.training.distribution import is_chief, make_strategy
from bert_tf.training.loop import TrainingLoop, TrainingResult
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.protocols import TaskLoss
from bert_tf.training.throughput import measure_matmul_peak
from bert_tf.training.timeline import LoopSettings, PhaseSettings
from bert_tf.weights.model_directory import ModelDirectory, load_weights, read_model_directory
from bert_tf.weights.resizing import VocabularySubset

EVALUATION_TOKENS = 4096
_LENGTH_MULTIPLE_OF_TENSOR_CORES = 8  # products in 16 bits are fastest in such sizes


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningResult(FinetuningRows):
    """The outcome of a fine-tuning.

    Attributes:
        best: step and metrics of the model in `best/`; without evaluation only the last step.
        improved_epoch: epoch of the last evaluation with a better metric, or a lower loss that
            counts.
        epochs: passes over the training rows so far.
        results: see `evaluation.measure_best`; None without evaluation rows, and in workers other
            than the chief.
    """

    task: Task
    training: TrainingResult
    best: dict[str, Any]
    best_model: BestModel
    improved_epoch: float
    epochs: float
    results: TaskResults | None


def ignore_choices(config: FinetuneConfig) -> None:
    """Do nothing with the values that were chosen."""


def finetune(
    config: FinetuneConfig,
    console: Console,
    check: RowsCheck = accept_any_rows,
    note_choices: Callable[[FinetuneConfig], None] = ignore_choices,
) -> FinetuningResult:
    """Fine-tune a model and write the run directory `config.output`, `best/` included.

    An interrupted run resumes from its newest checkpoint.

    Args:
        config: options of `finetune`.
        check: may reject rows.
        note_choices: gets the config before the first step, with a value for each key that follows
            from the rows.

    Raises:
        InputError: rows cannot be used, or training diverged.
        UsageError: a file or column is missing, or rows are longer than the model allows.
        StoppedEarly: on request, after a checkpoint.
    """
    strategy = make_strategy(config.strategy, config.tpu_address, console)
    init = read_model_directory(config.init)
    arithmetic = finetuning_arithmetic(config, init, strategy=strategy, console=console)
    policy = arithmetic.precision.policy
    writes = is_chief(strategy)
    console.info(*init.notes)
    tokenizer = WordPieceTokenizer(init.vocab, lowercase=init.lowercase)
    task, read = read_rows(config, init, tokenizer, console, check)
    rows, loss = _taught(
        config, task, read, tokenizer, policy=policy, writes=writes, console=console
    )
    if config.teaching is not None:
        # The distance to the teacher is part of the training loss.
        read = dataclasses.replace(read, train=dataclasses.replace(read.train, chance_loss=None))
    config = with_recipe(
        config, init.config, rows, max_seq_length=task.max_seq_length, console=console
    )
    note_choices(config)
    # Only the embeddings of words that occur are trained: the others have no gradient, and their
    # weights are put back when the model is written.
    subset = VocabularySubset(init, [data.rows.ids for data in rows.by_name.values()])
    rows = rows.renumbered(subset)
    pad_id = int(subset.numbers(tokenizer.pad_id))
    model = build_model(
        config, task, subset.directory, policy=policy, strategy=strategy, console=console
    )
    parts = strategy.num_replicas_in_sync * arithmetic.shards
    precision = arithmetic.precision
    inputs = make_inputs(config, task, rows.train, parts=parts, precision=precision, pad_id=pad_id)
    console.warn(*too_few_steps(config, inputs, len(rows.train.rows)))
    keep_arithmetic(config, arithmetic)
    evaluator = None
    if rows.evaluation is not None:
        batching = _evaluation_batches(
            config, task, pad_id=pad_id, has_few_shapes=arithmetic.compiles_all
        )
        evaluator = Evaluator(task, model, rows.evaluation, batching, console)
    evaluate = EpochEvaluation(
        config, model, task, init=init, evaluator=evaluator, strategy=strategy, restore=subset.whole
    )
    training = TrainingLoop(
        model=model,
        loss=loss,
        optimizer=built_optimizer(config, model, strategy),
        inputs=inputs,
        strategy=strategy,
        settings=_loop_settings(config, model, inputs, measure_matmul_peak(policy, strategy)),
        run_directory=Path(config.output),
        arithmetic=arithmetic,
        console=console,
        evaluate=evaluate,
    ).run()
    return _finish(config, task, read, training, inputs, tokenizer, writes=writes, console=console)


def _taught(
    config: FinetuneConfig,
    task: Task,
    read: FinetuningRows,
    tokenizer: WordPieceTokenizer,
    *,
    policy: str,
    writes: bool,
    console: Console,
) -> tuple[FinetuningRows, TaskLoss]:
    """Return the rows to train on and their loss; with a teacher, its soft labels.

    Args:
        config: options of `finetune`.
        task: the task.
        read: the rows as read.
        tokenizer: tokenizer of the model.
        policy: Keras' dtype policy.
        writes: whether this process writes the soft labels into the run.
        console: gets progress of the teacher.
    """
    if config.teaching is None:
        return read, FinetuningLoss(task)
    student = task.as_student()
    teacher = Path(config.output) / "teacher"
    keeper = SoftLabels(config.teaching, teacher, policy=policy, writes=writes, console=console)
    soft = keeper.added(student, read.train, read.unlabeled, tokenizer)
    return dataclasses.replace(read, train=soft), DistillationLoss(student, config.teaching)


def _finish(
    config: FinetuneConfig,
    task: Task,
    read: FinetuningRows,
    training: TrainingResult,
    inputs: FinetuningInputs,
    tokenizer: WordPieceTokenizer,
    *,
    writes: bool,
    console: Console,
) -> FinetuningResult:
    """Measure the best model, and write the profile of its rows.

    Args:
        config: options of `finetune`.
        task: the task.
        read: the rows as they were read.
        training: outcome of the steps.
        inputs: the training batches.
        tokenizer: tokenizer of the model.
        writes: whether this process writes the run.
        console: receives the measures.
    """
    best = training.notes["best"]
    results = None
    if read.evaluation is not None and writes:
        task, results = measure_best(config.output, read, console)
        best = {"step": best["step"], **results.metrics}
    if writes:
        write_profile(config.output, task, read, results, tokenizer)
    return FinetuningResult(
        **vars(read),
        task=task,
        training=training,
        best=best,
        best_model=_best_model(config, training.notes, results, inputs.steps_per_epoch),
        improved_epoch=improved_at(training.notes) / inputs.steps_per_epoch,
        epochs=training.step / inputs.steps_per_epoch,
        results=results,
    )


def finetuning_arithmetic(
    config: FinetuneConfig,
    init: ModelDirectory,
    *,
    strategy: tf.distribute.Strategy,
    console: Console,
) -> Arithmetic:
    """Settle the arithmetic of a run that starts from a model; see `settle_arithmetic`."""
    return settle_arithmetic(
        config,
        batch_rows(config),
        strategy=strategy,
        console=console,
        model=config.with_dropout(init.config),
    )


def build_model(
    config: FinetuneConfig,
    task: Task,
    init: ModelDirectory,
    *,
    policy: str,
    strategy: tf.distribute.Strategy,
    console: Console,
) -> Any:
    """Make the task's model with the weights of `init`, and draw missing ones from the seed.

    Args:
        config: options of `finetune`.
        init: the model to start from.
        policy: dtype policy of Keras.
        strategy: the variables are made in its scope.
    """
    keras.utils.set_random_seed(unsigned_seed(config.seed, 32))
    with strategy.scope():
        model = task.build_model(config.with_dropout(init.config), policy=policy)
        model.build_weights()
        fresh = load_weights(model, init)
    if config.freeze_layers:
        number = config.freeze_layers
        model.encoder.freeze(number)
        layers = "the first layer" if number == 1 else f"the first {number} layers"
        console.info(f"not trained: the embeddings and {layers}")
    if fresh:
        console.info(f"new weights: {', '.join(fresh)}")
    return model


def make_inputs(
    config: FinetuneConfig,
    task: Task,
    data: TaskData,
    *,
    parts: int,
    precision: PrecisionPolicy,
    pad_id: int,
) -> FinetuningInputs:
    """Make training batches.

    Args:
        config: options of `finetune`.
        data: the training rows.
        parts: devices or cores that share a micro-batch.
        precision: decides to which lengths rows are padded.
        pad_id: id of [PAD].
    """
    return FinetuningInputs(
        data,
        batch_size=config.recipe.batch_size,
        row_multiple=config.gradient_accumulation_steps * parts,
        length_multiple=length_multiple(precision),
        max_seq_length=task.max_seq_length,
        pad_id=pad_id,
        seed=config.seed,
    )


def _best_model(
    config: FinetuneConfig,
    notes: dict[str, Any],
    results: TaskResults | None,
    steps_per_epoch: int,
) -> BestModel:
    """Describe the model in `best/`, with its metric as measured in float32, if it was."""
    metric = config.selection_metric
    best = BestModel.of_notes(notes, metric=metric, steps_per_epoch=steps_per_epoch)
    if results is None:
        return best
    return best.measured(
        results.metrics[metric], results.errors.get(metric), len(results.predictions)
    )


def _evaluation_batches(
    config: FinetuneConfig, task: Task, *, pad_id: int, has_few_shapes: bool
) -> Batching:
    return Batching(
        max_seq_length=task.max_seq_length,
        pad_id=pad_id,
        batch_tokens=EVALUATION_TOKENS,
        max_rows=config.eval_batch_size,
        has_few_shapes=has_few_shapes,
    )


def built_optimizer(config: FinetuneConfig, model: Any, strategy: tf.distribute.Strategy) -> Any:
    """Make the optimizer of a config, in the scope of a strategy."""
    with strategy.scope():
        return make_optimizer(config, num_hidden_layers=model.config.num_hidden_layers)


def _loop_settings(
    config: FinetuneConfig, model: Any, inputs: FinetuningInputs, peak_flops: float | None
) -> LoopSettings:
    total_steps = _total_steps(config, inputs)
    phase = PhaseSettings(
        steps=total_steps,
        accumulation_steps=config.gradient_accumulation_steps,
        peak_learning_rate=config.recipe.learning_rate,
        warmup_steps=round(config.warmup_proportion * total_steps),
        work=ModelFlops.of_encoder(
            model.config,
            frozen_layers=config.freeze_layers,
            reads_all_tokens=model.reads_all_tokens,
        ),
    )
    return LoopSettings.from_config(
        config,
        phases=(phase,),
        peak_flops=peak_flops,
        eval_every=inputs.steps_per_epoch,
        shown_metrics=config.shown_metrics,
        early_stop_loss=config.early_stop_loss or 0.0,
    )


def batch_rows(config: FinetuneConfig) -> list[BatchRows]:
    """Return the sizes of a batch and its parts; [] if the loss needs the batch as a whole.

    Before the rows are read, a batch size that is not given counts as the largest one that the
    recipe chooses.
    """
    if config.compares_rows:
        return []
    accumulated = config.gradient_accumulation_steps
    batch_size = config.batch_size or max(former_defaults(config)["batch_size"], accumulated)
    return [BatchRows(batch=batch_size, micro_batches=accumulated, is_filled_up=True)]


def _total_steps(config: FinetuneConfig, inputs: FinetuningInputs) -> int:
    return max(1, round(config.recipe.epochs * inputs.steps_per_epoch))


def length_multiple(precision: PrecisionPolicy) -> Lengths:
    """Return the lengths to pad to: few for XLA, which compiles each one."""
    if not precision.use_xla:
        return _LENGTH_MULTIPLE_OF_TENSOR_CORES if has_accelerator() else 1
    return COMPILED_LENGTHS


_FEW = 20  # steps; fewer are too few to learn from
_ENOUGH = 100  # steps that the warning proposes


def too_few_steps(config: FinetuneConfig, inputs: FinetuningInputs, rows: int) -> Iterator[str]:
    """Yield a warning if a run has fewer than 20 steps.

    With warmup among so few, a new head stays close to chance; the smallest sets of GLUE have a
    few hundred (RTE: 234 at batch size 32).
    """
    steps = _total_steps(config, inputs)
    if steps < _FEW:
        epochs, batch_size, _ = config.recipe
        needed = math.ceil(_ENOUGH / math.ceil(rows / batch_size))
        yield (
            f"{quantity(rows, 'training row')} in batches of {batch_size} make "
            f"{quantity(steps, 'step')} in {epochs:g} epochs, too few to learn from; give "
            f"--epochs {needed} for {_ENOUGH} steps, or a smaller --batch-size"
        )

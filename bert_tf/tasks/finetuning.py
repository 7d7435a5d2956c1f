"""Fine-tuning of any task: data, model, loop, evaluation after every epoch, the best model kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.seeds import unsigned_seed
from bert_tf.base.wording import quantity
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.rows.batching import LENGTH_MULTIPLE
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.model_flops import ModelFlops
from bert_tf.tasks.losses import FinetuningLoss
from bert_tf.tasks.prediction import Evaluator
from bert_tf.tasks.registry import task_class
from bert_tf.tasks.task import RowsCheck, Task, TaskData, accept_any_rows
from bert_tf.tasks.training_inputs import FinetuningInputs
from bert_tf.training.devices.precision import PrecisionPolicy, choose_precision
from bert_tf.training.devices.strategy import is_chief, make_strategy
from bert_tf.training.devices.throughput import measure_matmul_peak
from bert_tf.training.loop import TrainingLoop, TrainingResult
from bert_tf.training.optimizers.make import make_optimizer
from bert_tf.training.plan.settings import LoopSettings, PhaseSettings
from bert_tf.training.run.best_model import BestModel, BestModelKeeper
from bert_tf.weights.model_directory import (
    ModelDirectory,
    load_weights,
    read_model_directory,
)

EVALUATION_TOKENS = 4096
_LENGTHS_UNDER_XLA = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningResult:
    """What a fine-tuning made.

    Attributes:
        task: the task with its labels.
        train, evaluation: the rows; no evaluation rows without `--eval`.
        training: how the loop ended.
        best: step and metrics of the model in `best/`; without evaluation the last step alone.
        best_model: which model that is.
    """

    task: Task
    train: TaskData
    evaluation: TaskData | None
    training: TrainingResult
    best: dict[str, Any]
    best_model: BestModel


def finetune(
    config: FinetuneConfig, console: Console, check: RowsCheck = accept_any_rows
) -> FinetuningResult:
    """Fine-tunes a model and writes the run directory `config.output`, `best/` included.

    An interrupted run goes on from its newest checkpoint.

    Args:
        config: model, rows and how to train.
        console: where lines for the user go.
        check: may refuse the rows that were read.

    Raises:
        InputError: the rows cannot be used, or training diverged.
        UsageError: a file or column is missing; the rows are longer than the model allows.
        StoppedEarly: a stop was asked for; a checkpoint has been saved.
    """
    strategy = make_strategy(config.strategy, config.tpu_address, console)
    init = read_model_directory(config.init)
    for note in init.notes:
        console.info(note)
    tokenizer = WordPieceTokenizer(init.vocab, lowercase=init.lowercase)
    task, source = task_class(config.task).from_training(config, console)
    _check_length(task, init)
    train = task.encode(source, tokenizer, training=True)
    evaluation = None
    if config.eval is not None:
        rows = task.read(config.eval, console, dialect=TableDialect.of(config))
        evaluation = task.encode(rows, tokenizer, training=False)
    _log_rows(console, train, evaluation)
    for line in task.describe(train.source, evaluation and evaluation.source):
        console.info(line)
    check([data.source for data in (train, evaluation) if data is not None])
    _check_selection(config, evaluation)

    numerics = choose_precision(config.precision, config.xla, static_shapes=False, console=console)
    keras.utils.set_random_seed(unsigned_seed(config.seed, 32))
    with strategy.scope():
        model = task.build_model(config.with_dropout(init.config), policy=numerics.policy)
        model.build_weights()
        fresh = load_weights(model, init)
    if fresh:
        console.info(f"new weights: {', '.join(fresh)}")
    evaluator = None
    if evaluation is not None:
        evaluator = Evaluator(
            task,
            model,
            evaluation,
            pad_id=tokenizer.pad_id,
            batch_tokens=EVALUATION_TOKENS,
            max_rows=config.eval_batch_size,
            console=console,
        )
    best = BestModelKeeper(
        Path(config.output) / "best",
        model,
        metric=config.selection_metric,
        vocab=init.vocab,
        lowercase=init.lowercase,
        task=task.settings(),
        writes=is_chief(strategy),
    )
    inputs = FinetuningInputs(
        train,
        batch_size=config.batch_size,
        row_multiple=strategy.num_replicas_in_sync * config.gradient_accumulation_steps,
        length_multiple=_length_multiple(numerics, task.max_seq_length),
        max_seq_length=task.max_seq_length,
        pad_id=tokenizer.pad_id,
        seed=config.seed,
    )
    training = _training_loop(
        config,
        model=model,
        task=task,
        inputs=inputs,
        strategy=strategy,
        numerics=numerics,
        evaluate=_EpochEvaluation(
            Path(config.output),
            vocab=init.vocab,
            evaluator=evaluator,
            best=best,
            writes=is_chief(strategy),
        ),
        console=console,
    ).run()
    return FinetuningResult(
        task=task,
        train=train,
        evaluation=evaluation,
        training=training,
        best=training.notes["best"],
        best_model=BestModel.of_notes(
            training.notes["best"],
            metric=config.selection_metric,
            steps_per_epoch=inputs.steps_per_epoch,
        ),
    )


def _training_loop(
    config: FinetuneConfig,
    *,
    model: Any,
    task: Task,
    inputs: FinetuningInputs,
    strategy: tf.distribute.Strategy,
    numerics: PrecisionPolicy,
    evaluate: _EpochEvaluation,
    console: Console,
) -> TrainingLoop:
    total_steps = max(1, round(config.epochs * inputs.steps_per_epoch))
    with strategy.scope():
        optimizer = make_optimizer(config, num_hidden_layers=model.config.num_hidden_layers)
    return TrainingLoop(
        model=model,
        loss=FinetuningLoss(task),
        optimizer=optimizer,
        inputs=inputs,
        strategy=strategy,
        settings=LoopSettings.from_config(
            config,
            phases=(
                PhaseSettings(
                    steps=total_steps,
                    accumulation_steps=config.gradient_accumulation_steps,
                    peak_learning_rate=config.learning_rate,
                    warmup_steps=round(config.warmup_proportion * total_steps),
                    work=ModelFlops.of_encoder(model.config),
                ),
            ),
            peak_flops=measure_matmul_peak(numerics.policy, strategy),
            eval_every=inputs.steps_per_epoch,
        ),
        run_directory=Path(config.output),
        console=console,
        evaluate=evaluate,
        use_xla=numerics.use_xla,
        scale_loss=numerics.scale_loss,
    )


class _EpochEvaluation:
    """What the loop calls after every epoch: the metrics on the evaluation rows, the best kept.

    Args:
        run: the run directory.
        vocab: written there for who looks for it beside the checkpoints.
        evaluator: None without evaluation rows; the last model is the best then.
        best: keeps the model.
        writes: False for workers that only train along.
    """

    def __init__(
        self,
        run: Path,
        *,
        vocab: list[str],
        evaluator: Evaluator | None,
        best: BestModelKeeper,
        writes: bool,
    ):
        self._run = run
        self._vocab = vocab
        self._evaluator = evaluator
        self._best = best
        self._writes = writes

    def __call__(self, step: int, notes: dict[str, Any]) -> dict[str, float]:
        """The metrics of an eval line; see `bert_tf.training.loop.TrainingLoop`."""
        metrics = {} if self._evaluator is None else dict(self._evaluator.run().metrics)
        if self._writes and "best" not in notes:
            write_text_atomically(self._run / "vocab.txt", "\n".join([*self._vocab, ""]))
        self._best.keep_if_best({"step": step}, metrics, notes)
        return metrics


def _check_length(task: Task, init: ModelDirectory) -> None:
    longest = init.config.max_position_embeddings
    if task.max_seq_length > longest:
        raise UsageError(
            f"--max-seq-length {task.max_seq_length}: {init.path} has positions for {longest} "
            f"pieces only; use at most {longest}"
        )


def _check_selection(config: FinetuneConfig, evaluation: TaskData | None) -> None:
    if evaluation is None or config.selection_metric != "loss" or evaluation.weights.any():
        return
    raise UsageError(
        f"--best-metric loss: {config.eval} does not say where its answers stand in the contexts, "
        f"so there is no loss; choose one of {', '.join(config.metrics)}"
    )


def _log_rows(console: Console, train: TaskData, evaluation: TaskData | None) -> None:
    for name, data in (("training", train), ("evaluation", evaluation)):
        if data is not None:
            rejects = data.source.rejects
            rejected = f", {len(rejects):,} rejected" if rejects else ""
            console.info(
                f"{name}: {quantity(len(data.source), 'row')}{rejected}, "
                f"{quantity(len(data.rows), 'sequence')}, {quantity(len(data.rows.ids), 'piece')}"
            )


def _length_multiple(numerics: PrecisionPolicy, max_seq_length: int) -> int:
    """Padded lengths are multiples of this; XLA compiles for each, so there it makes few."""
    if not numerics.use_xla:
        return LENGTH_MULTIPLE
    return -(-max_seq_length // (_LENGTHS_UNDER_XLA * 8)) * 8

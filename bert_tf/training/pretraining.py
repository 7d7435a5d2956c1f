"""Pretraining from records to a model directory."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.config.console import Console
from bert_tf.config.errors import InputError, UsageError
from bert_tf.config.sections.training import TrainConfig
from bert_tf.data.dataset import PretrainingInputs, evaluation_batches
from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.training.evaluation import Evaluation
from bert_tf.training.loop import Evaluate, TrainingLoop, TrainingResult
from bert_tf.training.optimizer import make_optimizer
from bert_tf.training.precision import choose_numerics
from bert_tf.training.pretraining_loss import PretrainingLoss
from bert_tf.training.settings import LoopSettings, PhaseSettings
from bert_tf.training.strategy import is_chief, make_strategy
from bert_tf.weights.model_directory import (
    ModelDirectory,
    load_weights,
    write_model_directory,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingResult:
    """How a run ended.

    Attributes:
        training: the loop's result.
        sequences: sequences of all updates, those of earlier epochs counted again.
        packing: `sequences_a_row`, `filled_share` and `rows_an_update`; None without packing.
    """

    training: TrainingResult
    sequences: int
    packing: dict[str, float] | None


def pretrain(
    config: TrainConfig,
    *,
    bert_config: BertConfig,
    data: PretrainingData,
    vocab: list[str],
    initial: ModelDirectory | None,
    console: Console,
) -> PretrainingResult:
    """Trains a model on masked-LM and next-sentence records, or goes on where it was interrupted.

    `config.output` gets checkpoints, metrics and, under `best/`, the model directory with the
    lowest masked-LM loss on the eval records (the last one where there are none).

    Args:
        config: the `train` section.
        bert_config: the model's shape.
        data: the records.
        vocab: their vocabulary.
        initial: weights to start from, None for random ones.
        console: progress.

    Raises:
        UsageError: model and data do not fit, or the batch cannot be divided among replicas.
        InputError: damaged records, or a loss that is not finite.
        StoppedEarly: SIGTERM or Ctrl-C, after saving.
    """
    strategy = make_strategy(config.strategy, config.tpu_address, console)
    check_batch_size(config, strategy)
    numerics = choose_numerics(config.precision, config.xla, static_shapes=True, console=console)
    inputs = PretrainingInputs(
        data.paths("train"),
        data,
        batch_size=config.batch_size,
        seed=config.seed,
        packing=config.packing,
        row_multiple=strategy.num_replicas_in_sync * config.gradient_accumulation_steps,
    )
    console.say(
        f"{inputs.record_count:,} training records; {config.steps:,} steps of {config.batch_size} "
        f"are {config.steps * config.batch_size / inputs.record_count:.2f} epochs"
    )
    if inputs.packing is not None:
        console.say(
            f"packing: {inputs.packing.sequences_a_row:.2f} sequences a row, "
            f"{inputs.packing.filled_share:.1%} of the places filled, {inputs.rows} rows an update"
        )
    keras.utils.set_random_seed(config.seed)
    with strategy.scope():
        model = BertPretrainingModel(bert_config, dtype=numerics.policy)
        model.build_weights()
        optimizer = make_optimizer(config, num_hidden_layers=bert_config.num_hidden_layers)
    if initial is not None:
        for name in load_weights(model, initial):
            console.warn(f"{initial.path} has no {name}; it starts at random")
    console.say(f"{model.count_params():,} parameters")

    loss = PretrainingLoss()
    best = BestModel(Path(config.output) / "best", model, vocab=vocab, lowercase=data.lowercase)
    loop = TrainingLoop(
        model=model,
        loss=loss,
        optimizer=optimizer,
        inputs=inputs,
        strategy=strategy,
        settings=LoopSettings.from_config(
            config,
            phases=(
                PhaseSettings(
                    steps=config.steps,
                    accumulation_steps=config.gradient_accumulation_steps,
                    peak_learning_rate=config.learning_rate,
                    warmup_steps=config.warmup_steps
                    or round(config.steps * config.warmup_proportion),
                ),
            ),
            eval_every=config.eval_every,
            max_minutes=config.max_minutes,
            steps_per_call=config.steps_per_call,
        ),
        run_directory=Path(config.output),
        console=console,
        evaluate=_evaluation_on_records(config, data, model, loss, strategy, best, console),
        use_xla=numerics.use_xla,
        scale_loss=numerics.scale_loss,
    )
    try:
        result = loop.run()
    except tf.errors.OpError as error:
        raise inputs.failure or _record_error(error) or error from None
    if result.eval is None and is_chief(strategy):
        best.write()
    return PretrainingResult(
        training=result,
        sequences=inputs.sequences_before(result.step),
        packing=None
        if inputs.packing is None
        else {
            "sequences_a_row": round(inputs.packing.sequences_a_row, 4),
            "filled_share": round(inputs.packing.filled_share, 4),
            "rows_an_update": inputs.rows,
        },
    )


class BestModel:
    """Writes `best/` whenever the masked-LM loss on the eval records is the lowest so far."""

    def __init__(self, path: Path, model: Any, *, vocab: list[str], lowercase: bool):
        self._path = path
        self._model = model
        self._vocab = vocab
        self._lowercase = lowercase

    def keep_if_best(self, step: int, metrics: dict[str, float], notes: dict[str, Any]) -> None:
        """Compares with `notes["best"]`, which survives in checkpoints, and updates it."""
        best = notes.get("best")
        if best is None or metrics["mlm_loss"] < best["mlm_loss"]:
            self.write()
            notes["best"] = {"step": step, "mlm_loss": metrics["mlm_loss"]}

    def write(self) -> None:
        """Writes the model as it is now."""
        write_model_directory(
            self._path, self._model, vocab=self._vocab, lowercase=self._lowercase, task=None
        )


def check_batch_size(config: TrainConfig, strategy: tf.distribute.Strategy) -> None:
    """Refuses a batch that replicas and accumulation cannot divide evenly.

    Raises:
        UsageError: with the nearest batch size that works.
    """
    parts = strategy.num_replicas_in_sync * config.gradient_accumulation_steps
    if config.batch_size % parts:
        raise UsageError(
            f"--batch-size {config.batch_size} cannot be divided evenly by "
            f"{strategy.num_replicas_in_sync} replicas x {config.gradient_accumulation_steps} "
            f"accumulation steps; use {-(-config.batch_size // parts) * parts}"
        )


def _evaluation_on_records(
    config: TrainConfig,
    data: PretrainingData,
    model: Any,
    loss: PretrainingLoss,
    strategy: tf.distribute.Strategy,
    best: BestModel,
    console: Console,
) -> Evaluate | None:
    if not data.eval_shards:
        console.warn(
            f"{data.directory} has no eval shards, so nothing is evaluated and best/ is the last "
            "model; preprocess with --eval-fraction above 0 to have some"
        )
        return None
    evaluation = Evaluation(
        model=model,
        loss=loss,
        strategy=strategy,
        make_dataset=lambda: evaluation_batches(
            data.paths("eval"), data, batch_size=config.batch_size, limit=config.eval_examples
        ),
    )

    def evaluate(step: int, notes: dict[str, Any]) -> dict[str, float]:
        metrics = evaluation.run()
        if not metrics:
            console.warn(f"the eval shards of {data.directory} are empty; evaluation is skipped")
        elif is_chief(strategy):
            best.keep_if_best(step, metrics, notes)
        return metrics

    return evaluate


def _record_error(error: tf.errors.OpError) -> InputError | None:
    """What TensorFlow says about damaged records, as an error for the user."""
    if isinstance(error, tf.errors.DataLossError):
        return InputError(
            f"an eval shard is damaged ({error.message.splitlines()[0]}); make the data again"
        )
    return None

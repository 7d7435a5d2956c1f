"""The content of a file of labeled rows, and the time of a training step on it on this machine."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from bert_tf.base.console import Console
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.base.review import review_rows
from bert_tf.tasks.base.task import FinetuningLoss, Task
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.registry import task_class
from bert_tf.tasks.running.batches import FinetuningInputs
from bert_tf.tasks.running.ceiling import measure_ceiling
from bert_tf.tasks.running.finetuning import (
    build_model,
    built_optimizer,
    finetuning_arithmetic,
    make_inputs,
)
from bert_tf.tasks.running.finetuning_rows import (
    MOST_ENCODED,
    Truncation,
    repeated_texts,
    spread_rows,
)
from bert_tf.training.distribution import distributed_iterator, make_strategy
from bert_tf.training.step import TrainingStep
from bert_tf.weights.model_directory import ModelDirectory
from bert_tf.weights.resizing import VocabularySubset

_LEAST_STEPS = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowSurvey:
    """The content of a file of labeled rows.

    Attributes:
        rows: number of usable rows.
        rejects: the other rows.
        duplicates: number of rows whose texts occur in an earlier row.
        conflicting: number of texts that have several labels.
        details: lines of the task about its rows.
        lengths: int64 [sequences], of a sample, [CLS] and [SEP] included.
        in_windows: whether a row may have several sequences.
        sequences_per_row: mean number of sequences of a row.
        cut: a sentence about tokens that are cut off; None without any.
    """

    rows: int
    rejects: list[Reject]
    duplicates: int
    conflicting: int
    details: tuple[str, ...]
    lengths: np.ndarray
    in_windows: bool
    sequences_per_row: float
    cut: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredSteps:
    """Training steps as they run on this machine."""

    seconds: float  # of a step, the mean of the `count` timed ones
    start_seconds: float  # to encode the rows, build the model and trace the first step
    tokens_per_second: float  # padding not counted
    count: int
    precision: str


class Surveyor:
    """Surveys the training file of a config with the model that it starts from.

    Make it before TensorFlow runs anything, since it settles how TensorFlow uses the cores. Keys of
    the config other than columns may be proposed later.
    """

    def __init__(self, config: FinetuneConfig, init: ModelDirectory, console: Console):
        self._init = init
        self._console = console
        self._strategy = make_strategy(config.strategy, config.tpu_address, console)
        self._arithmetic = finetuning_arithmetic(
            config, init, strategy=self._strategy, console=console
        )
        self._tokenizer = WordPieceTokenizer(init.vocab, lowercase=init.lowercase)

    def look(self, config: FinetuneConfig, console: Console) -> RowSurvey:
        """Read the file, warn of its rows, and encode a sample with the config's length."""
        task, source, data = self._read(config, console)
        duplicates, conflicting = repeated_texts(task, source)
        truncation = Truncation.of(data)
        return RowSurvey(
            rows=len(source),
            rejects=source.rejects,
            duplicates=duplicates,
            conflicting=len(conflicting),
            details=tuple(task.describe({"training": source})),
            lengths=np.asarray(data.rows.lengths),
            in_windows=data.owners is not None,
            sequences_per_row=len(data.rows) / len(data.source),
            cut=str(truncation) if truncation.rows_cut else None,
        )

    def measure(self, config: FinetuneConfig, seconds: float, console: Console) -> MeasuredSteps:
        """Time training steps on a sample of the file, with the model's own weights.

        Args:
            config: complete, with all columns and the recipe.
            seconds: time to measure, at least two steps; building the step takes more time.
            console: shows the ceiling of the rows.

        Raises:
            UsageError, InputError: see `Ceiling.report`.
        """
        begin = time.monotonic()
        task, _, data = self._read(config, self._console)
        ceiling = measure_ceiling(task, data, self._tokenizer, fits=True)
        if ceiling is not None:
            ceiling.report(console, config.min_ceiling)
        subset = VocabularySubset(self._init, [data.rows.ids])
        precision = self._arithmetic.precision
        model = build_model(
            config,
            task,
            subset.directory,
            policy=precision.policy,
            strategy=self._strategy,
            console=self._console,
        )
        inputs = make_inputs(
            config,
            task,
            data.renumbered(subset.numbers),
            parts=self._arithmetic.shards,
            precision=precision,
            pad_id=int(subset.numbers(self._tokenizer.pad_id)),
        )
        optimizer = built_optimizer(config, model, self._strategy)
        with self._strategy.scope():
            optimizer.build(model.trainable_variables)
        step = TrainingStep(
            model=model,
            loss=FinetuningLoss(task),
            optimizer=optimizer,
            strategy=self._strategy,
            arithmetic=self._arithmetic,
            clip_norm=config.gradient_clip_norm,
            seed=config.seed,
        )
        return self._time(config, step, inputs, seconds, begin)

    def _time(
        self,
        config: FinetuneConfig,
        step: TrainingStep,
        inputs: FinetuningInputs,
        seconds: float,
        begin: float,
    ) -> MeasuredSteps:
        batches = distributed_iterator(self._strategy, lambda: inputs.batches(0))
        rate = np.array([config.recipe.learning_rate], np.float32)

        def one_step(number: int) -> float:
            counted = step.run(
                batches,
                first_step=number,
                learning_rates=rate,
                accumulation_steps=config.gradient_accumulation_steps,
                untouched=number > 0,
            )
            return float(counted["tokens"][0])

        one_step(0)  # traces
        tokens = 0.0
        count = 0
        start = time.monotonic()
        while count < _LEAST_STEPS or time.monotonic() - start < seconds:
            count += 1
            tokens += one_step(count)
        taken = time.monotonic() - start
        return MeasuredSteps(
            seconds=taken / count,
            start_seconds=start - begin,
            tokens_per_second=tokens / taken,
            count=count,
            precision=self._arithmetic.precision.policy.removeprefix("mixed_"),
        )

    def _read(self, config: FinetuneConfig, console: Console) -> tuple[Task, Any, TaskData]:
        """Return the task, the rows as it reads them, and a sample of them encoded."""
        task, source = task_class(config.task).from_training(config, console)
        review_rows(task, source, console, dialect=TableDialect.of(config))
        sample = spread_rows(source, MOST_ENCODED)
        return task, source, task.encode(sample, self._tokenizer, training=True)

"""Measuring a fine-tuned model on labeled rows."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.base.console import Advance, Console
from bert_tf.base.files import replacing_file, write_text_atomically
from bert_tf.config.bert_file import model_folder
from bert_tf.config.sections import EvaluateConfig, FinetuneConfig
from bert_tf.data.rows.encoded_rows import Batching
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.places import ID
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocabulary_files import VOCAB, read_folder_vocabulary
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.review import read_and_review
from bert_tf.tasks.base.task import (
    RowsCheck,
    Task,
    accept_any_rows,
)
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.profile.profile import Profile
from bert_tf.tasks.profile.texts import TextProfile
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.running.batches import EVALUATING, Evaluator
from bert_tf.tasks.running.ceiling import Ceiling, measure_ceiling, with_ceiling
from bert_tf.tasks.running.finetuning_rows import (
    MOST_ENCODED,
    FinetuningRows,
    Truncation,
    spread_rows,
)
from bert_tf.training.arithmetic import has_accelerator, keep_float32_exact
from bert_tf.training.best_model import BestModelKeeper
from bert_tf.training.distribution import WorkerSync
from bert_tf.weights.model_directory import (
    ModelDirectory,
    Restore,
    load_all_weights,
    read_model_directory,
    write_task,
)

_BATCH_TOKENS = 2048


def evaluate(
    config: EvaluateConfig, console: Console, check: RowsCheck = accept_any_rows
) -> tuple[Task, FileRows, TaskResults]:
    """Run a model, in float32, over labeled rows.

    Args:
        config: options of `evaluate`.
        check: may reject rows.

    Returns:
        The task, the rows, and the results on them.

    Raises:
        InputError: no row can be used, or the rows keep a perfect model below `min_ceiling`.
        UsageError: the model is not fine-tuned or lacks weights of its head, a file or column is
            missing, the model has no use for a named column, or its options keep a perfect model
            below `min_ceiling`.
    """
    directory = read_model_directory(config.model)
    task = task_from_settings(directory.task, config.model).with_columns(config)
    source = read_and_review(task, config.data, console, dialect=TableDialect.of(config))
    check([source])
    tokenizer = WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase)
    data = _encoded(task, source, tokenizer, console)
    ceiling = _checked_ceiling(config, task, data, tokenizer, console)
    results = _float32_evaluator(directory, task, data, config.batch_tokens, console).run()
    console.end_progress(Advance.counted(EVALUATING, len(source), len(source)))
    return task, source, with_ceiling(results, ceiling)


def exported_ceiling(
    config: EvaluateConfig, task: Task, source: FileRows, console: Console
) -> Ceiling | None:
    """Report the ceiling of a perfect model on rows of an exported model, and return it.

    Returns:
        The ceiling; None if the model's folder has no vocabulary.

    Raises:
        UsageError, InputError: see `Ceiling.report`.
    """
    folder = model_folder(config.model)
    if not (folder / VOCAB).is_file():
        return None
    vocabulary = read_folder_vocabulary(folder)
    tokenizer = WordPieceTokenizer(vocabulary.vocab, lowercase=vocabulary.lowercase)
    data = task.encode(spread_rows(source, MOST_ENCODED), tokenizer, training=False)
    return _checked_ceiling(config, task, data, tokenizer, console)


def _checked_ceiling(
    config: EvaluateConfig,
    task: Task,
    data: TaskData,
    tokenizer: WordPieceTokenizer,
    console: Console,
) -> Ceiling | None:
    """Measure the ceiling of rows, and refuse them if it is too low."""
    ceiling = measure_ceiling(task, data, tokenizer, fits=False)
    if ceiling is not None:
        ceiling.report(console, config.min_ceiling, is_trained=True)
    return ceiling


def predict_rows(path: str, source: FileRows, console: Console) -> dict[str, Any]:
    """Predict labeled rows by the model of a run or model directory; raise as `evaluate`."""
    directory = read_model_directory(path)
    task = task_from_settings(directory.task, path)
    tokenizer = WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase)
    data = _encoded(task, source, tokenizer, console)
    predicted = _float32_evaluator(directory, task, data, _BATCH_TOKENS, console).predict()
    console.end_progress(Advance.counted(EVALUATING, len(source), len(source)))
    return predicted


def measure_best(path: str, read: FinetuningRows, console: Console) -> tuple[Task, TaskResults]:
    """Fit the task of a run's best model, see `Task.fitted`, and measure it, in float32.

    Training computes in the fastest precision, but thresholds and the like have to fit the float32
    logits of `evaluate` and exported models. Replaces the model's `task.json` if that changes it.

    Args:
        path: run or model directory.
        read: rows of the run. There must be evaluation rows, whose ceiling becomes part of the
            results.
    """
    data = read.evaluation
    assert data is not None
    directory = read_model_directory(path)
    task = task_from_settings(directory.task, path)
    evaluator = _float32_evaluator(directory, task, data, _BATCH_TOKENS, console)
    fitted, results = evaluator.fit_and_run()
    console.end_progress(Advance.counted(EVALUATING, len(data.source), len(data.source)))
    if fitted.settings() != directory.task:
        write_task(directory.path, fitted.settings())
    return fitted, with_ceiling(results, read.ceilings.get("evaluation"))


def write_profile(
    path: str,
    task: Task,
    read: FinetuningRows,
    results: TaskResults | None,
    tokenizer: WordPieceTokenizer,
) -> None:
    """Write the profile of a run's rows beside its best model.

    Args:
        path: the run.
        task: the task, as fitted.
        read: its rows.
        results: results of the best model on evaluation rows; None without any.
        tokenizer: tokenizer of the model.
    """
    evaluated = None
    if results is not None and read.evaluation is not None:
        evaluated = task.evaluated(read.evaluation.source, dict(results.predicted))
    on_host = HostTokenizer(tokenizer.vocab, lowercase=tokenizer.lowercase)
    texts = TextProfile.of(task.texts(read.train.source), on_host)
    Profile(evaluation=evaluated, texts=texts).write(model_folder(path))


def _encoded(
    task: Task, source: FileRows, tokenizer: WordPieceTokenizer, console: Console
) -> TaskData:
    """Encode all rows, and report those that are too long for the model."""
    data = task.encode(source, tokenizer, training=False)
    Truncation.of(data).log(console, source.source, "the model was trained to read no more")
    return data


def _float32_evaluator(
    directory: ModelDirectory, task: Task, data: TaskData, batch_tokens: int, console: Console
) -> Evaluator:
    """Load a model to evaluate it in float32, as exported models compute."""
    keep_float32_exact()
    model = task.build_model(directory.config, policy="float32")
    load_all_weights(model, directory)
    batching = Batching(
        max_seq_length=task.max_seq_length,
        pad_id=directory.vocab.index("[PAD]"),
        batch_tokens=batch_tokens,
        has_few_shapes=has_accelerator(),
    )
    return Evaluator(task, model, data, batching, console)


class EpochEvaluation:
    """Measures the evaluation rows after every epoch, and keeps the best model.

    Args:
        config: options of `finetune`.
        model: the model in training.
        task: the task, as learned from the training rows.
        init: the model at the start, for its vocabulary.
        evaluator: None without evaluation rows; the last model is the best then.
        strategy: its chief writes all files, and its metrics count on all workers.
        restore: adds the parts that the model was built without.
    """

    def __init__(
        self,
        config: FinetuneConfig,
        model: Any,
        task: Task,
        *,
        init: ModelDirectory,
        evaluator: Evaluator | None,
        strategy: tf.distribute.Strategy,
        restore: Restore,
    ):
        self._run = Path(config.output)
        self._task = task
        self._vocab = init.vocab
        self._evaluator = evaluator
        workers = WorkerSync(strategy)
        self._writes = workers.writes
        self._of_chief = workers.of_chief
        self._best = BestModelKeeper(
            self._run / "best",
            model,
            metric=config.selection_metric,
            vocab=init.vocab,
            lowercase=init.lowercase,
            writes=workers.writes,
            restore=restore,
        )

    def __call__(self, step: int, notes: dict[str, Any]) -> dict[str, float]:
        """Evaluate after an epoch, and keep the model if it is the best so far.

        Args:
            step: step of the training.
            notes: notes of the checkpoint, which keep the measures of the best model.

        Returns:
            The metrics, on all workers those of the chief; none without evaluation rows.
        """
        task = self._task
        metrics: dict[str, float] = {}
        errors: dict[str, float] = {}
        if self._evaluator is not None:
            task, results = self._evaluator.fit_and_run()
            metrics, errors = self._of_chief(results.metrics, results.errors)
        if self._writes and "best" not in notes:
            write_text_atomically(self._run / "vocab.txt", "\n".join([*self._vocab, ""]))
        self._best.keep_if_best({"step": step}, metrics, notes, task.settings(), errors)
        return metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoubtedRow:
    """A row whose label is likely wrong, by models that have not seen the row.

    Attributes:
        line: line of the file where it starts, from 1.
        row, id: see `Place`.
        label: its own label.
        label_probability: probability of its own label, 0 to 1.
        suggested_label: the label with the highest probability.
        suggested_probability: probability of that label, 0 to 1.
        texts: the row's texts by input name.
    """

    line: int
    row: int = 0
    id: str = ""
    label: str
    label_probability: float
    suggested_label: str
    suggested_probability: float
    texts: dict[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelErrors:
    """The result of a search for wrong labels.

    Attributes:
        source: all rows.
        inputs: names of the texts.
        doubted: the doubtful rows, the least likely labels first.
        unchecked: number of usable rows whose label no model could learn, since no other row has
            it.
        results: results on the checked rows, each predicted by a model that has not seen it.
    """

    source: FileRows
    inputs: tuple[str, ...]
    doubted: list[DoubtedRow]
    unchecked: int
    results: TaskResults


def write_doubted_rows(path: Path, rows: Sequence[DoubtedRow], inputs: Sequence[str]) -> None:
    """Write a CSV with a line per row: `line`, labels, their probabilities and the texts.

    With `row` and `id` where rows have these, see `Places.columns`.
    """
    fields = [field.name for field in dataclasses.fields(DoubtedRow) if field.name != "texts"]
    unused = {name for name in ("row", ID) if not any(getattr(row, name) for row in rows)}
    names = [name for name in fields if name not in unused]
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*names, *inputs])
        for row in rows:
            cells = [getattr(row, name) for name in names]
            if "row" in names:
                cells[names.index("row")] = row.row or row.line
            table_rows = [
                round(cell, PROBABILITY_DIGITS) if isinstance(cell, float) else cell
                for cell in cells
            ]
            writer.writerow([*table_rows, *(row.texts[name] for name in inputs)])

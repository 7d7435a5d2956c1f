"""The rows of a fine-tuning: read, checked, and some held out if no file is for evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.rows.holdout import held_out_rows
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_rows import FileRows, Table
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.signatures import MANY_CUT
from bert_tf.tasks.base.review import read_and_review, review_rows
from bert_tf.tasks.base.task import RowsCheck, Task
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.registry import task_class
from bert_tf.tasks.running.ceiling import Ceiling, measure_ceiling
from bert_tf.weights.model_directory import ModelDirectory
from bert_tf.weights.resizing import VocabularySubset

LEAST_HELD_OUT = 5
MOST_ENCODED = 20_000  # rows that are encoded where a sample is enough, spread evenly over the file
Rows = TypeVar("Rows", bound=FileRows)
# A tenth of fewer rows would be too few to measure.
_FEW_ROWS = 50
_FRACTION_OF_FEW = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningRows:
    """Rows to train and evaluate on.

    Attributes:
        evaluation: None without evaluation.
        held_out: whether the evaluation rows were held out of the training file.
        unlabeled: rows to learn only from a teacher; None for none.
        ceilings: ceilings of the rows, by the keys of `by_name`.
    """

    train: TaskData
    evaluation: TaskData | None
    held_out: bool
    unlabeled: Table | None = None
    ceilings: dict[str, Ceiling] = dataclasses.field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, TaskData]:
        """The rows that there are, as `training` and `evaluation`."""
        named = {"training": self.train, "evaluation": self.evaluation}
        return {name: data for name, data in named.items() if data is not None}

    def renumbered(self, subset: VocabularySubset) -> Self:
        return dataclasses.replace(
            self,
            train=self.train.renumbered(subset.numbers),
            evaluation=self.evaluation and self.evaluation.renumbered(subset.numbers),
        )


def read_rows(
    config: FinetuneConfig,
    init: ModelDirectory,
    tokenizer: WordPieceTokenizer,
    console: Console,
    check: RowsCheck,
) -> tuple[Task, FinetuningRows]:
    """Read the rows of all files, learn the task from those of training, and check both.

    Args:
        config: options of `finetune`.
        init: the model to start from.
        tokenizer: tokenizer of the model.
        check: may reject rows.

    Raises:
        InputError: a file's rows cannot be used, are too few to hold some out, or keep a perfect
            model below `min_ceiling`.
        UsageError: a file or column is missing, the options ask for more than the rows have, or
            keep a perfect model below `min_ceiling`.
    """
    task, source = task_class(config.task).from_training(config, console)
    dialect = TableDialect.of(config)
    review_rows(task, source, console, dialect=dialect)
    _check_sizes(task, config, init)
    _warn_of_conflicts(task, source, console)
    held_out = None
    if config.eval is None and config.eval_fraction:
        chosen = _held_out(config, task, source, check, console)
        if chosen is not None:
            source, held_out = source.split(chosen)
            with source.reasons_first():
                task = task.trained_on(source)
    train = task.encode(source, tokenizer, training=True)
    evaluation = None
    if config.eval is not None:
        rows = read_and_review(task, config.eval, console, dialect=dialect)
        evaluation = task.encode(rows, tokenizer, training=False)
        _warn_of_leaks(task, source, rows, console)
    elif held_out is not None:
        evaluation = task.encode(held_out, tokenizer, training=False)
    unlabeled = None
    teaching = config.teaching
    if teaching is not None and teaching.unlabeled is not None:
        # The column of ids of training rows may not be there.
        unnamed = dataclasses.replace(dialect, id_column=None)
        unlabeled = task.as_student().read_unlabeled(teaching.unlabeled, console, dialect=unnamed)
    read = FinetuningRows(
        train=train,
        evaluation=evaluation,
        held_out=held_out is not None,
        unlabeled=unlabeled,
    )
    _log_rows(console, read, config.remedy_for_long_texts)
    console.info(*task.describe({name: data.source for name, data in read.by_name.items()}))
    check(_files(read))
    _check_selection(config, evaluation)
    ceilings = {}
    for name, data in read.by_name.items():
        ceiling = measure_ceiling(task, data, tokenizer, fits=True)
        if ceiling is not None:
            ceiling.report(console, config.min_ceiling)
            ceilings[name] = ceiling
    return task, dataclasses.replace(read, ceilings=ceilings)


def spread_rows(source: Rows, most: int) -> Rows:
    """Return at most `most` rows of a file, spread evenly over it, without its rejects."""
    if len(source) <= most:
        return source
    return source.selected(np.linspace(0, len(source) - 1, most).astype(np.int64), [])


def repeated_texts(task: Task, source: FileRows) -> tuple[int, list[int]]:
    """Count rows with the texts of an earlier row.

    Returns:
        The count; and the first row, in order, of each of the texts that have several classes.
    """
    classes = task.groups(source).classes
    first: dict[int, int] = {}
    labels_by_text: dict[int, set[str]] = {}
    keys = _keys(task, source)
    for number, key in enumerate(keys):
        first.setdefault(key, number)
        if classes is not None:
            labels_by_text.setdefault(key, set()).add(str(classes[number]))
    conflicting = [first[key] for key, labels in labels_by_text.items() if len(labels) > 1]
    return len(keys) - len(first), conflicting


def _keys(task: Task, source: FileRows, form: Callable[[Any], str] = str) -> list[int]:
    """Return a hash of the texts of each row, or of each pair if rows have several.

    Args:
        task: the task.
        source: the rows.
        form: returns the form of a text to hash.
    """
    texts = task.texts(source).values()
    return [hash(tuple(map(form, row))) for row in zip(*texts, strict=True)]


def _folded(text: Any) -> str:
    return " ".join(str(text).split()).casefold()


def _warn_of_conflicts(task: Task, source: FileRows, console: Console) -> None:
    _, conflicting = repeated_texts(task, source)
    if conflicting:
        console.warn(
            f"{source.source}: {quantity(len(conflicting), 'text')} with several labels in its "
            f"{quantity(len(source), 'row')}, the first at line {source.place(conflicting[0])}; "
            "decide on one label each"
        )


def _warn_of_leaks(task: Task, train: FileRows, evaluation: FileRows, console: Console) -> None:
    trained_on = set(_keys(task, train, _folded))
    keys = _keys(task, evaluation, _folded)
    seen = [number for number, key in enumerate(keys) if key in trained_on]
    leaked = sorted({number % len(evaluation) for number in seen})
    if leaked:
        console.warn(
            f"{evaluation.source}: {len(leaked):,} of {quantity(len(evaluation), 'row')} repeat "
            f"the texts of a row of {train.source}, up to case and spacing, the first at line "
            f"{evaluation.place(leaked[0])}, so metrics are too high; remove them from one file"
        )


def _held_out(
    config: FinetuneConfig, task: Task, source: FileRows, check: RowsCheck, console: Console
) -> np.ndarray | None:
    """Return the held-out rows, bool [rows]; None if there are too few.

    Raises:
        InputError: there are too few, and an option needs evaluation.
    """
    fraction = config.eval_fraction
    groups = task.groups(source)
    chosen = held_out_rows(groups, fraction)
    if np.count_nonzero(chosen) >= LEAST_HELD_OUT:
        return chosen
    if len(source) < _FEW_ROWS:
        fraction = max(fraction, _FRACTION_OF_FEW)
    chosen = held_out_rows(groups, fraction, least=LEAST_HELD_OUT)
    if LEAST_HELD_OUT <= np.count_nonzero(chosen) <= len(source) // 2:
        return chosen
    few = (
        f"{config.train}: {quantity(len(source), 'usable row')} of "
        f"{quantity(len(set(groups.keys)), 'different text')}, too few to hold out "
        f"{LEAST_HELD_OUT} for evaluation and to train on others"
    )
    if config.is_series or config.best_metric or config.early_stop_evals:
        check([source])  # the reason may be that most rows are rejected
        raise InputError(f"{few}; give --eval FILE, or leave out the options that need evaluation")
    console.warn(f"{few}; the model is trained on all and not evaluated (give --eval FILE)")
    return None


def _files(read: FinetuningRows) -> list[FileRows]:
    """Return the rows of each file; held-out rows are joined with the rest of their file."""
    sources: list[FileRows] = [data.source for data in read.by_name.values()]
    if read.held_out:
        first = sources[0]
        lines = [line for source in sources for line in source.lines]
        sources = [
            FileRows(source=first.source, lines=lines, rejects=first.rejects, places=first.places)
        ]
    return sources if read.unlabeled is None else [*sources, read.unlabeled]


def _check_sizes(task: Task, config: FinetuneConfig, init: ModelDirectory) -> None:
    longest = init.config.max_position_embeddings
    if task.max_seq_length > longest:
        raise UsageError(
            f"--max-seq-length {task.max_seq_length}: {init.path} has positions for {longest} "
            f"tokens only; use at most {longest}"
        )
    if config.freeze_layers > init.config.num_hidden_layers:
        raise UsageError(
            f"--freeze-layers {config.freeze_layers}: {init.path} has only "
            f"{quantity(init.config.num_hidden_layers, 'layer')}"
        )


def _check_selection(config: FinetuneConfig, evaluation: TaskData | None) -> None:
    if evaluation is None or config.selection_metric != "loss" or evaluation.weights.any():
        return
    raise UsageError(
        f"--best-metric loss: {evaluation.source.source} does not give the positions of its "
        f"answers, so there is no loss; choose one of {', '.join(config.metrics)}"
    )


def _log_rows(console: Console, read: FinetuningRows, remedy: str) -> None:
    for name, data in read.by_name.items():
        rejects = data.source.rejects
        rejected = f", {len(rejects):,} rejected" if rejects else ""
        console.info(
            f"{name}: {quantity(len(data.source), 'row')}{rejected}, "
            f"{quantity(len(data.rows.second_starts), 'sequence')}, "
            f"{quantity(len(data.rows.ids), 'token')}"
        )
    if read.unlabeled is not None:
        console.info(f"without labels: {quantity(len(read.unlabeled), 'row')}")
    for data in read.by_name.values():
        Truncation.of(data).log(console, data.source.source, remedy)
    console.info(*read.train.notes)  # those of evaluation rows are in its results
    if read.held_out and read.evaluation is not None:
        held_out = len(read.evaluation.source)
        rows = len(read.train.source) + held_out
        console.info(
            f"no --eval: {held_out:,} of {quantity(rows, 'row')} ({held_out / rows:.1%}) are held "
            "out for evaluation, chosen by a hash of their texts (--eval-fraction 0 trains on all "
            "of them)"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Truncation:
    """Rows of a file that lose tokens.

    Attributes:
        rows: number of rows of the file.
        rows_cut: number of rows that lose tokens.
        tokens: tokens of all sequences before the cut.
        tokens_lost: tokens that are cut off.
    """

    rows: int
    rows_cut: int
    tokens: int
    tokens_lost: int

    @classmethod
    def of(cls, data: TaskData) -> Self:
        lost = data.rows.lost_tokens
        if lost is None:
            lost = np.zeros(len(data.rows), np.int64)
        owners = np.arange(len(lost)) if data.owners is None else data.owners
        return cls(
            rows=len(data.source),
            rows_cut=len(np.unique(owners[lost > 0])),
            tokens=len(data.rows.ids) + int(lost.sum()),
            tokens_lost=int(lost.sum()),
        )

    def __str__(self) -> str:
        return (
            f"{self.rows_cut:,} of {quantity(self.rows, 'row')} ({self.rows_cut / self.rows:.1%}) "
            f"are too long and lose {self.tokens_lost:,} of {quantity(self.tokens, 'token')} "
            f"({self.tokens_lost / self.tokens:.1%})"
        )

    def log(self, console: Console, source: str, remedy: str) -> None:
        """Show the loss, if any, and warn with a remedy if many rows are cut."""
        if self.rows_cut > MANY_CUT * self.rows:
            console.warn(f"{source}: {self}; {remedy}")
        elif self.rows_cut:
            console.info(f"{source}: {self}")

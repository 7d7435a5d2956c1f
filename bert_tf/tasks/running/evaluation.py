"""Measuring a fine-tuned model on labeled rows."""

from __future__ import annotations

from typing import Any

from bert_tf.base.console import Console
from bert_tf.config.sections import EvaluateConfig
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.base.task import LabeledRows, RowsCheck, Task, TaskResults, accept_any_rows
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.running.prediction import Evaluator, evaluation_progress
from bert_tf.tasks.running.truncation import Truncation
from bert_tf.weights.model_directory import (
    ModelDirectory,
    load_all_weights,
    read_model_directory,
)

_BATCH_TOKENS = 2048


def evaluate(
    config: EvaluateConfig, console: Console, check: RowsCheck = accept_any_rows
) -> tuple[LabeledRows, TaskResults]:
    """Runs a model, in float32, over labeled rows.

    Args:
        config: model and rows.
        console: where lines for the user go.
        check: may refuse the rows that were read.

    Returns:
        The rows; metrics, with the mean loss among them where it is known, and predictions.

    Raises:
        InputError: no row can be used.
        UsageError: the model is not fine-tuned, weights of its head are missing, a file or column
            is missing, or a column is named that the model has no use for.
    """
    directory = read_model_directory(config.model)
    task = task_from_settings(directory.task, config.model).with_columns(config)
    source = task.read(config.data, console, dialect=TableDialect.of(config))
    check([source])
    evaluator = _evaluator(directory, task, source, config.batch_tokens, console)
    results = evaluator.run()
    console.end_progress(evaluation_progress(len(source), len(source)))
    return source, results


def predict_rows(
    path: str, source: LabeledRows, console: Console, *, batch_tokens: int = _BATCH_TOKENS
) -> dict[str, Any]:
    """Runs a model, in float32, over labeled rows that are read; returns its predictions.

    Args:
        path: run or model directory.
        source: rows as the model's task reads them.
        console: shows progress.
        batch_tokens: tokens per batch, padding included.

    Raises:
        UsageError: the model is not fine-tuned, or weights of its head are missing.
    """
    directory = read_model_directory(path)
    task = task_from_settings(directory.task, path)
    predicted = _evaluator(directory, task, source, batch_tokens, console).predict()
    console.end_progress(evaluation_progress(len(source), len(source)))
    return predicted


def _evaluator(
    directory: ModelDirectory,
    task: Task,
    source: LabeledRows,
    batch_tokens: int,
    console: Console,
) -> Evaluator:
    tokenizer = WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase)
    model = task.build_model(directory.config, policy="float32")
    model.build_weights()
    load_all_weights(model, directory)
    data = task.encode(source, tokenizer, training=False)
    Truncation.of(data).log(console, source.source, "the model was trained to read no more")
    return Evaluator(
        task,
        model,
        data,
        pad_id=tokenizer.pad_id,
        batch_tokens=batch_tokens,
        max_rows=None,
        console=console,
    )

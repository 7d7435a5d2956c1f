"""Measuring a fine-tuned model on labeled rows."""

from __future__ import annotations

from bert_tf.base.console import Console
from bert_tf.config.sections import EvaluateConfig
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.prediction import Evaluator, evaluation_progress
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.task import LabeledRows, RowsCheck, TaskResults, accept_any_rows
from bert_tf.tasks.truncation import Truncation
from bert_tf.weights.model_directory import load_all_weights, read_model_directory


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
    tokenizer = WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase)
    model = task.build_model(directory.config, policy="float32")
    model.build_weights()
    load_all_weights(model, directory)
    data = task.encode(source, tokenizer, training=False)
    Truncation.of(data).log(console, source.source, "the model was trained to read no more")
    evaluator = Evaluator(
        task,
        model,
        data,
        pad_id=tokenizer.pad_id,
        batch_tokens=config.batch_tokens,
        max_rows=None,
        console=console,
    )
    results = evaluator.run()
    console.end_progress(evaluation_progress(len(source), len(source)))
    return source, results

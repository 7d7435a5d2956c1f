"""Behavior of every task on labeled rows."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.pages import check_page
from behavior.recomputed_metrics import RECOMPUTED, check_metrics_of_predictions

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.data.rows.encoded_rows import Batching
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.engines.engine import encoded_lists, encoded_texts
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import Task
from bert_tf.tasks.registry import TASKS, task_from_settings
from bert_tf.tasks.running.batches import Evaluator
from pipeline.report.page import evaluation_page
from pipeline.report.runs import FOREIGN


def check_task(
    task: Task,
    source: Any,
    tokenizer: WordPieceTokenizer,
    *,
    metrics: Sequence[str] | None = None,
) -> TaskResults:
    """Check the behavior that all tasks share, with a small model of random weights.

    The task comes back from its settings as JSON; the rows of a file give model input, targets and
    weights of one length; every weight of the model gets a gradient of the loss; there is a
    prediction for each row of the file with the columns that are declared, whatever the batches;
    the module that is exported predicts the same from the texts, and so does what it is compared
    with; the metrics that may choose the best model are measured, and all metrics follow from the
    predicted rows.

    Args:
        task: with what it learned from training rows.
        source: labeled rows that it read, several.
        tokenizer: of the model.
        metrics: those that may choose the best model (default: all that are declared).

    Returns:
        What the model was measured as.
    """
    assert task_from_settings(json.loads(json.dumps(task.settings())), "m") == task
    data = task.encode(source, tokenizer, training=False)
    rows = len(data.rows)
    assert rows >= len(source) > 1
    assert data.rows.lengths.max() <= task.max_seq_length
    assert data.weights.shape == (rows,) and data.weights.dtype == np.float32
    assert data.targets or data.token_targets
    assert all(len(values) == rows for values in data.targets.values())
    assert all(len(values) == len(data.rows.ids) for values in data.token_targets.values())
    owners = np.arange(rows) if data.owners is None else data.owners
    assert set(owners.tolist()) == set(range(len(source)))

    keras.utils.set_random_seed(0)
    model = task.build_model(_small_config(tokenizer, task.max_seq_length), policy="float32")
    model.build_weights()
    _check_gradients(task, model, data, tokenizer)
    one, many = (
        Evaluator(task, model, data, batching, Console(io.StringIO())).run()
        for batching in (
            Batching(
                max_seq_length=task.max_seq_length, pad_id=tokenizer.pad_id, batch_tokens=tokens
            )
            for tokens in (1 << 20, 2 * task.max_seq_length)
        )
    )
    assert len(one.predictions) == len(many.predictions) == len(source)
    declared = task.declaration
    assert TASKS[declared.name] is declared
    names = {field.name for field in declared.predictions}
    for row, other in zip(one.predictions, many.predictions, strict=True):
        assert names <= row.keys() == other.keys()
    chosen_by = {"loss", *(declared.options.metrics if metrics is None else metrics)}
    assert chosen_by <= one.metrics.keys() == many.metrics.keys()
    assert set(declared.options.headline_metrics) <= one.metrics.keys()
    for name, value in one.metrics.items():
        assert np.isfinite(value), name
        np.testing.assert_allclose(many.metrics[name], value, rtol=1e-4, err_msg=name)
    if declared.name in RECOMPUTED:  # not a task that a test makes
        check_metrics_of_predictions(task, one)
    _check_served(task, model, data.source, tokenizer, one)
    html = evaluation_page(task, data.source, one, model="m")
    check_page(html)
    assert not FOREIGN.search(html.partition("</h1>")[2].partition("</main>")[0])
    return one


def check_exported_predictions(of_run: Path, of_export: Path) -> None:
    """Check that a run and its export predict the same for every row they were evaluated on.

    Labels and texts are equal, numbers to 1e-5.

    Args:
        of_run, of_export: what `evaluate` wrote for each, in float32.
    """
    ours, exported = (
        [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
        for folder in (of_run, of_export)
    )
    assert ours
    for row, other in zip(ours, exported, strict=True):
        assert row == _approximately(other, relative=1e-5)


def _small_config(tokenizer: WordPieceTokenizer, length: int) -> BertConfig:
    return BertConfig(
        vocab_size=len(tokenizer.vocab),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=length,
        initializer_range=0.5,
    )


def _check_gradients(task: Task, model: Any, data: Any, tokenizer: WordPieceTokenizer) -> None:
    chosen = np.arange(len(data.rows))
    batch = {
        name: tf.constant(values)
        for name, values in data.batch(
            chosen, length=task.max_seq_length, pad_id=tokenizer.pad_id
        ).items()
    }
    with tf.GradientTape() as tape:
        outputs = task.outputs(model, batch, training=True, dropout_key=tf.constant([1, 2]))
        losses = task.loss_parts(outputs, batch).losses
        loss = tf.add_n(list(losses.values()))
    assert losses.keys() == task.weights(batch).keys()
    assert {len(values) for values in outputs.values()} == {len(chosen)}
    weights = [weight.value for weight in model.trainable_weights]
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        assert gradient is not None, weight.name
        assert np.isfinite(tf.convert_to_tensor(gradient)).all(), weight.name


def _check_served(
    task: Task, model: Any, source: Any, tokenizer: WordPieceTokenizer, measured: TaskResults
) -> None:
    texts = task.texts(source)
    module = task.serving_module(model, tokenizer)
    assert set(module.inputs()) == set(texts) <= set(task.declaration.inputs)
    encoded = {
        name: encoded_lists(values) if name in module.list_inputs else encoded_texts(values)
        for name, values in texts.items()
    }
    outputs = module.predict(
        {name: tf.constant(values, tf.string) for name, values in encoded.items()},
        tf.constant(2 * task.max_seq_length),
    )
    served = {name: _decoded(values.numpy()) for name, values in outputs.items()}
    reference = task.reference_outputs(model, tokenizer, texts)
    assert reference
    for name, values in reference.items():
        np.testing.assert_allclose(served[name], values, atol=1e-5, err_msg=name)
    results = task.measure(source, served)
    assert len(results.predictions) == len(measured.predictions)
    for row, other in zip(results.predictions, measured.predictions, strict=True):
        assert row == _approximately(other)


def _approximately(value: Any, *, relative: float = 1e-4) -> Any:
    """Return a value of JSON that equals those whose numbers differ by no more than rounding."""
    if isinstance(value, dict):
        return {name: _approximately(item, relative=relative) for name, item in value.items()}
    if isinstance(value, list):
        return [_approximately(item, relative=relative) for item in value]
    return pytest.approx(value, rel=relative, abs=1e-5) if isinstance(value, float) else value


def _decoded(values: np.ndarray) -> np.ndarray:
    if values.dtype != object:
        return values
    return np.array([text.decode() for text in values], object)

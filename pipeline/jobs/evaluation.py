"""`evaluate`: a fine-tuned or exported model and labeled rows to metrics and predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.bert_file import CONFIG, model_folder, read_task
from bert_tf.config.registries import AUTO, FLOAT32
from bert_tf.config.sections import EvaluateConfig
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import count_reasons
from bert_tf.engines.choice import ChosenEngine, possible_engines
from bert_tf.engines.registry import is_exported
from bert_tf.tasks.base.prediction_rows import Abstention, TaskResults, equal_predictions
from bert_tf.tasks.base.review import read_and_review
from bert_tf.tasks.base.task import FileRows, Task
from bert_tf.tasks.registry import declared_task, task_from_settings
from bert_tf.tasks.running.batches import EVALUATING
from bert_tf.tasks.running.ceiling import with_ceiling
from bert_tf.tasks.running.evaluation import evaluate, exported_ceiling
from pipeline.jobs.task_reports import (
    RejectsCheck,
    best_model_of,
    check_inputs_exist,
    log_results,
    row_counts,
    write_evaluation,
)
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_folder import check_finished, finished_model
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import read_manifest, rejects_path

_MOST_STEPS = 8  # from a model to the files that it was trained on


def run(config: EvaluateConfig, options: RunOptions) -> dict[str, Any]:
    """Evaluate a model; return the manifest.

    Args:
        config: of `evaluate`.
        options: how the command runs.

    Raises:
        UsageError: the model is unfinished, or does not fit the options.
        InputError, TooManyRejects: the rows cannot be used.
    """
    config = dataclasses.replace(config, model=finished_model(config.model, options.console))
    model = model_folder(config.model)
    if (model / CONFIG).is_file():
        check_finished(model)
    chosen = _chosen_engine(config)
    if chosen is not None:
        config = dataclasses.replace(config, engine=chosen.entry.name, precision=chosen.precision)
    abstention = None
    if config.abstain_below is not None:
        declared = declared_task(read_task(model), config.model)
        abstention = Abstention.of(declared, config.abstain_below, config.model)
    spec = JobSpec(
        config=config,
        inputs=check_inputs_exist({"model": str(model), "data": config.data}),
        checked_inputs={} if chosen is None else {"model": chosen.entry.reads},
    )
    return run_job(
        spec, options, lambda record: _evaluate(config, options, chosen, abstention, record)
    )


def _evaluate(
    config: EvaluateConfig,
    options: RunOptions,
    chosen: ChosenEngine | None,
    abstention: Abstention | None,
    record: JobRecord,
) -> None:
    output = Path(config.output)
    check = RejectsCheck(options.max_rejects, rejects_path(output), options.console)
    if known := list(_warn_of_training_rows(config, record.identity["inputs"])):
        record.warn(known)
    if chosen is not None:
        options.console.info(f"engine: {chosen.name}")
        record.extra |= {"engine": config.engine, "precision": config.precision}
    best = best_model_of(config.model)
    if best is not None:
        options.console.info(f"{config.model}: {best}")
        record.extra["best_model"] = dataclasses.asdict(best)
    with record.stage("evaluate"):
        if chosen is None:
            task, source, results = evaluate(config, options.console, check)
        else:  # without a loss
            task = task_from_settings(read_task(config.model), config.model).with_columns(config)
            dialect = TableDialect.of(config)
            source = read_and_review(task, config.data, options.console, dialect=dialect)
            check([source])
            ceiling = exported_ceiling(config, task, source, options.console)
            predicted = _predicted(config, chosen, task, source, options.console)
            measured = with_ceiling(task.measure(source, predicted), ceiling)
            results = dataclasses.replace(measured, predicted=predicted)
    if config.precision != FLOAT32:
        results = _with_comparison(record, config, task, source, results)
    if abstention is not None:
        results = abstention.measured(results)
    write_evaluation(record, output, (task, source, results), model=config.model, best=best)
    record.counts = {**row_counts(source), "rejected": count_reasons(source.rejects)}
    record.metrics = results.metrics
    log_results(options.console, results)
    record.list_rejects(rejects_path(output), len(source.rejects))


def _warn_of_training_rows(
    config: EvaluateConfig, inputs: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Say that the rows are those that the model was trained on, if manifests know it."""
    digests = {each["sha256"] for each in inputs if each["key"] == "data"}
    for path in _trained_on(config.model, digests):
        yield (
            f"{config.data}: the model was trained on these rows ({path}), so the metrics say how "
            "well it remembers them, not how well it predicts others; evaluate on other rows"
        )


def _trained_on(model: str, digests: Collection[str], depth: int = 0) -> list[str]:
    """Return the training files, of the model or of those before it, with one of some SHA-256."""
    folder = Path(model)
    manifest = read_manifest(folder) or (folder.name == "best" and read_manifest(folder.parent))
    if not manifest or depth > _MOST_STEPS:
        return []
    paths = []
    for each in manifest.get("inputs", []):
        if each.get("key") == "train" and each.get("sha256") in digests:
            paths.append(str(each["path"]))
        elif each.get("key") in ("run", "source") and Path(each["path"]).is_dir():
            paths += _trained_on(each["path"], digests, depth + 1)
    return paths


def _chosen_engine(config: EvaluateConfig) -> ChosenEngine | None:
    """Return the engine of an exported model; None for a run directory, which needs none."""
    if is_exported(config.model):
        return possible_engines(config.engine, config.precision, config.model)[0]
    if config.precision != FLOAT32:
        raise UsageError(
            f"--precision {config.precision}: {config.model} is not an exported model and is "
            "evaluated in float32; leave --precision out, or export the model first"
        )
    if config.engine != AUTO:
        raise UsageError(
            f"--engine {config.engine}: {config.model} is not an exported model, so no engine runs "
            "it; leave --engine out, or export the model first"
        )
    return None


def _with_comparison(
    record: JobRecord, config: EvaluateConfig, task: Task, source: FileRows, results: TaskResults
) -> TaskResults:
    """Add the results of the same engine in float32.

    Args:
        task: of the model.
        source: the rows.
        results: in the precision of the config.
    """
    assert results.predicted is not None
    with record.stage("compare"):
        plain = possible_engines(config.engine, FLOAT32, config.model)[0]
        predicted = _predicted(config, plain, task, source, record.console)
        fields = [field for field in task.declaration.predictions if not field.is_extra]
        # Rows with the same prediction, at any probability; None if a task only predicts
        # numbers.
        equal = equal_predictions(fields, results.predicted, predicted)
        metrics = task.measure(source, predicted).metrics
    equal_rows = None if equal is None else int(equal.sum())
    if equal_rows is not None:
        record.console.info(
            f"{config.precision} and float32 agree on {equal_rows:,} of "
            f"{quantity(len(source), 'row')} ({equal_rows / len(source):.2%})"
        )
    for name, value in metrics.items():
        other = results.metrics[name]
        record.console.info(
            f"{name}: {value:.4f} in float32, {other:.4f} in {config.precision} "
            f"({other - value:+.4f})"
        )
    details = {"float32": {"metrics": metrics, "rows": len(source), "equal_rows": equal_rows}}
    record.extra |= details
    report = dataclasses.replace(results.report, details={**results.report.details, **details})
    return dataclasses.replace(results, report=report)


def _predicted(
    config: EvaluateConfig, chosen: ChosenEngine, task: Task, source: FileRows, console: Console
) -> dict[str, np.ndarray]:
    engine = chosen.load(config.model, is_checked=True)
    texts = task.texts(source)
    with console.counting(EVALUATING, max(map(len, texts.values()))) as show:
        return engine.predict(texts, batch_tokens=config.batch_tokens, on_rows=show)

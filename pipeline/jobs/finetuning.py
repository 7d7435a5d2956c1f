"""`finetune`: labeled rows and a model to a run directory with the best model in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.config.model_files import model_folder
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.tables.rejects import Reject, count_reasons
from bert_tf.tasks.base.task import TaskData
from bert_tf.tasks.running.finetuning import FinetuningResult, finetune
from bert_tf.tasks.running.finetuning_rows import LEAST_HELD_OUT
from bert_tf.tasks.running.learning_doubts import learning_doubts
from bert_tf.tasks.running.truncation import Truncation
from bert_tf.training.devices.strategy import is_chief_process
from pipeline.jobs.finetuning_series import run_series
from pipeline.jobs.task_reports import (
    RejectsCheck,
    check_inputs_exist,
    log_report,
    row_counts,
    write_metrics,
    write_predictions,
)
from pipeline.jobs.training_runs import (
    log_if_nothing_resumes,
    train_along,
    warn_of_unfinished_run,
)
from pipeline.outputs.job import JobRecord, RunOptions, run_job
from pipeline.outputs.manifest import rejects_path
from pipeline.report.document import REPORT
from pipeline.report.evaluation_page import evaluation_page


def run(config: FinetuneConfig, options: RunOptions) -> dict[str, Any]:
    """Fine-tunes, once or for each run of a series, or resumes; returns the manifest.

    Of several workers only the chief writes; the others train along and return {}.
    """
    inputs = check_inputs_exist(
        {
            "train": config.train,
            "eval": config.eval,
            "init": str(model_folder(config.init)),
            **{key: path and str(model_folder(path)) for key, path in config.more_inputs.items()},
        }
    )
    if config.is_series:
        return run_series(config, options, inputs=inputs, run=run)
    if not is_chief_process(config.strategy):
        check = RejectsCheck(options.max_rejects, None, options.console)
        return train_along(
            config,
            options,
            lambda: finetune(config, options.console, check),
            extendable_key="epochs",
        )

    def body(record: JobRecord) -> None:
        log_if_nothing_resumes(config.output, options)
        warn_of_unfinished_run(config.init, options.console)
        rejects_file = rejects_path(config.output)
        check = RejectsCheck(options.max_rejects, rejects_file, options.console)
        with record.stage("finetune"):
            result = finetune(config, options.console, check)
        _record(record, config, result, rejects_file)

    return run_job(
        "finetune",
        config,
        options,
        output=config.output,
        output_is_directory=True,
        inputs=inputs,
        body=body,
        can_resume=True,
        extendable_key="epochs",
    )


def _record(
    record: JobRecord, config: FinetuneConfig, result: FinetuningResult, rejects_file: Path
) -> None:
    """Puts counts, metrics and files of a fine-tuning into the manifest."""
    sources = [data.source for data in (result.train, result.evaluation) if data is not None]
    if result.unlabeled is not None:
        sources.append(result.unlabeled)
    rejects = [reject for source in sources for reject in source.rejects]
    record.counts = {**_row_counts(result, rejects), "steps": result.training.step}
    record.metrics = {
        "best": result.best,
        "train": result.training.train,
        "eval": result.training.eval,
    }
    stopped = result.training.stopped_early
    record.extra = {
        "task": result.task.settings(),
        "best_model": dataclasses.asdict(result.best_model),
        "stopped_early": stopped,
        "eval_rows": _eval_rows(config, result),
        "extended_from": result.training.extended_from,
    }
    if stopped:
        record.console.info(f"stopped early at step {result.training.step}: {stopped}")
    if result.results is not None:
        log_report(record.console, result.results.report)
    for line in learning_doubts(result):
        record.console.warn(line)
    run = Path(config.output)
    record.made = [
        (str(run / "best"), str(result.best_model)),
        (str(run / "metrics.jsonl"), "losses and metrics by step"),
    ]
    if result.evaluation is not None and result.results is not None:
        write_metrics(run / "metrics.json", result.results.metrics, result.results.report)
        write_predictions(run / "predictions.jsonl", result.results.predictions)
        page = evaluation_page(
            result.task,
            result.evaluation.source,
            result.results,
            model=config.output,
            facts=[str(result.best_model), *_where_from(config, result)],
            chosen_by=result.best_model.metric,
        )
        write_text_atomically(run / REPORT, page)
        record.made += [
            (str(run / "metrics.json"), "metrics of the model in best/"),
            (str(run / "predictions.jsonl"), "its predictions for the evaluation rows"),
            (str(run / REPORT), "both as a page: tables, plots, the most wrong rows"),
        ]
    record.list_rejects(rejects_file, len(rejects))
    record.next_command = [
        *("bert-pipeline", "export", "--run", config.output),
        *("--output", f"{run}-model"),
    ]


def _eval_rows(config: FinetuneConfig, result: FinetuningResult) -> str | None:
    """Where the rows for evaluation are from; None without any."""
    if result.evaluation is None:
        return None
    if not result.held_out:
        return "a file of their own"
    held_out, train = len(result.evaluation.source), len(result.train.source)
    is_fraction = config.eval_fraction * (held_out + train) >= LEAST_HELD_OUT
    shown = f"{config.eval_fraction:g}" if is_fraction else f"{held_out:,} of {held_out + train:,}"
    return f"{shown} of the training rows, held out by a hash of their texts"


def _where_from(config: FinetuneConfig, result: FinetuningResult) -> list[str]:
    """What to know of held-out rows, in a sentence."""
    return [f"the rows are {_eval_rows(config, result)}"] if result.held_out else []


def _row_counts(result: FinetuningResult, rejects: Sequence[Reject]) -> dict[str, Any]:
    """Rows, sequences and tokens of each file; rows of all files and reasons of their rejects."""
    each = {
        name: {**row_counts(data.source), **_sequence_counts(data)}
        for name, data in (("train", result.train), ("eval", result.evaluation))
        if data is not None
    }
    if result.unlabeled is not None:
        each["unlabeled"] = row_counts(result.unlabeled)
    totals = {
        key: sum(counts[key] for counts in each.values())
        for key in ("rows_in", "rows_out", "rows_rejected")
    }
    return {**totals, "rejected": count_reasons(rejects), **each}


def _sequence_counts(data: TaskData) -> dict[str, int]:
    truncation = Truncation.of(data)
    return {
        "sequences": data.rows.num_sequences,
        "tokens": len(data.rows.ids),
        "rows_cut": truncation.rows_cut,
        "tokens_lost": truncation.tokens_lost,
    }

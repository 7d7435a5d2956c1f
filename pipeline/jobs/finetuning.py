"""`finetune`: labeled rows and a model to a run directory with the best model in it."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.files import remove
from bert_tf.config.bert_file import model_folder
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.tables.rejects import Reject, count_reasons
from bert_tf.embeddings.settings import EMBEDDING, EmbedderSettings
from bert_tf.tasks.profile.distance import (
    LEAST_TRAINING_ROWS,
    MOST_EVALUATION_ROWS,
    MOST_TRAINING_ROWS,
    TrainingDistance,
)
from bert_tf.tasks.profile.profile import Profile, read_profile
from bert_tf.tasks.profile.texts import joined_texts
from bert_tf.tasks.running.doubts import compared, learning_doubts, not_improved
from bert_tf.tasks.running.finetuning import FinetuningResult, finetune
from bert_tf.tasks.running.finetuning_rows import LEAST_HELD_OUT, Truncation
from bert_tf.training.best_model import PERFECT
from bert_tf.training.distribution import is_chief_process
from pipeline.jobs.finetuning_series import (
    SeriesRun,
    combinations,
    named_settings,
    record_series,
    run_folder,
)
from pipeline.jobs.task_reports import (
    RejectsCheck,
    check_inputs_exist,
    log_costs,
    log_if_nothing_resumes,
    row_counts,
    train_along,
    warn_of_unfinished_run,
    write_evaluation,
)
from pipeline.outputs.choices import open_keys, with_kept_choices
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.proposal.finetuning import preview_finetuning


def run(config: FinetuneConfig, options: RunOptions) -> dict[str, Any]:
    """Fine-tune, once or for each run of a series.

    Args:
        config: of `finetune`.
        options: how the command runs.

    Returns:
        The manifest; {} if this process is not the chief.

    Raises:
        UsageError: options, rows and model do not fit each other.
        InputError, TooManyRejects: rows cannot be used, or training diverged.
        StoppedEarly: on request, after a checkpoint.
    """
    inputs = check_inputs_exist(
        {
            "train": config.train,
            "eval": config.eval,
            "init": str(model_folder(config.init)),
            **{key: path and str(model_folder(path)) for key, path in config.more_inputs.items()},
        }
    )
    if config.dry_run:
        return preview_finetuning(config, options.console)
    left = open_keys(config)
    extendable_key = "seeds" if config.is_series else "epochs"
    # An interrupted run keeps what it has chosen, even if other values would be chosen now.
    config = config if options.overwrite else with_kept_choices(config)
    spec = JobSpec(
        config=config,
        inputs=inputs,
        can_resume=True,
        extendable_key=extendable_key,
        reads_inputs_first=True,
        open_keys=left,
    )
    if config.is_series:
        return run_job(spec, options, lambda record: _finetune_series(config, options, record))
    if not is_chief_process(config.strategy):
        # The chief writes the rejects of all.
        check = RejectsCheck(options.max_rejects, None, options.console)
        return train_along(spec, options, lambda: finetune(config, options.console, check))
    return run_job(spec, options, lambda record: _finetune(spec, config, options, record))


def _finetune(
    spec: JobSpec, config: FinetuneConfig, options: RunOptions, record: JobRecord
) -> None:
    log_if_nothing_resumes(record.folder, options)
    warn_of_unfinished_run(config.init, options.console)
    rejects_file = record.folder.place.rejects
    check = RejectsCheck(options.max_rejects, rejects_file, options.console)
    with record.stage("finetune"):
        result = finetune(
            config,
            options.console,
            check,
            note_choices=lambda chosen: record.note_choices(spec, chosen),
        )
        note_distance(config, result, options.console)
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
        "ceilings": {name: each.as_json() for name, each in result.ceilings.items()},
    }
    log_costs(config, result.training.seconds, record.console)
    if stopped:
        record.console.info(f"stopped early at step {result.training.step}: {stopped}")
    if result.results is not None:
        record.console.info(*result.results.report.lines)
        record.console.warn(*result.results.report.warnings)
    is_useful = _report_doubts(config, result, record)
    run = Path(config.output)
    record.made = [
        (str(run / "best"), str(result.best_model)),
        (str(run / "metrics.jsonl"), "losses and metrics by step"),
    ]
    if result.evaluation is not None and result.results is not None:
        write_evaluation(
            record,
            run,
            (result.task, result.evaluation.source, result.results),
            model=config.output,
            best=result.best_model,
            facts=[f"the rows are {_eval_rows(config, result)}"] if result.held_out else [],
            run=run,
        )
    record.list_rejects(rejects_file, len(rejects))
    _suggest(config, record, is_useful=is_useful)


def _report_doubts(config: FinetuneConfig, result: FinetuningResult, record: JobRecord) -> bool:
    """Report doubts about the best model; return whether it is of use nevertheless."""
    metric = config.selection_metric
    doubts = list(learning_doubts(result))
    # Without evaluation rows, nothing can be compared, and only learning decides.
    comparison = compared(result, metric)
    is_useful = not doubts
    if comparison is not None:
        # A model that beats the baseline is useful, even if its losses looked bad.
        is_useful = comparison.is_better
        record.extra["baseline"] = comparison.as_json()
        if not comparison.is_better and result.results is not None:
            rows = len(result.results.predictions)
            doubts.append(comparison.doubt(rows=rows, steps=result.training.step))
    record.warn(doubts)
    if result.training.stopped_early is None and result.best.get(metric) not in PERFECT:
        since = not_improved(metric, improved_epoch=result.improved_epoch, epochs=result.epochs)
        if result.evaluation is not None and since is not None:
            record.console.info(since)
    return is_useful


def _suggest(config: FinetuneConfig, record: JobRecord, *, is_useful: bool) -> None:
    """Suggest to export a model that is of use, and otherwise to look at the rows."""
    if is_useful:
        record.suggest("export", run=config.output, output=f"{config.output}-model")
    else:
        record.suggest("init", config.task, **{"from": config.train, "init": config.init})


def _eval_rows(config: FinetuneConfig, result: FinetuningResult) -> str | None:
    """Say where the rows for evaluation come from; None without any."""
    if result.evaluation is None:
        return None
    if not result.held_out:
        return "a file of their own"
    held_out = len(result.evaluation.source)
    train = len(result.train.source)
    # If there are few rows, a least number is held out instead of the fraction.
    is_fraction = config.eval_fraction * (held_out + train) >= LEAST_HELD_OUT
    share = f"{config.eval_fraction:g}" if is_fraction else f"{held_out:,} of {held_out + train:,}"
    return f"{share} of the training rows, held out by a hash of their texts"


def note_distance(config: FinetuneConfig, result: FinetuningResult, console: Console) -> None:
    """Add to the profile of the best model how far texts are from its training rows.

    Vectors of some rows are computed for that, of tasks that choose one label of a row.
    """
    task = result.task
    evaluation = result.evaluation
    labels = task.gold_numbers(result.train.source)
    if evaluation is None or labels is None or len(labels) < LEAST_TRAINING_ROWS:
        return
    folder = model_folder(config.output)
    embedder = EmbedderSettings.of_model(task.settings()).load(folder)
    texts = joined_texts(task.texts(result.train.source))
    rows = _spread(len(texts), MOST_TRAINING_ROWS)
    evaluation_texts = joined_texts(task.texts(evaluation.source))
    evaluation_rows = _spread(len(evaluation_texts), MOST_EVALUATION_ROWS)
    with console.counting("comparing rows", len(rows) + len(evaluation_rows)) as show:

        def vectors_of(chosen: list[str]) -> np.ndarray:
            return embedder.predict({"text": chosen}, on_rows=show)[EMBEDDING]

        vectors = vectors_of([texts[row] for row in rows.tolist()])
        of_evaluation = vectors_of([evaluation_texts[row] for row in evaluation_rows.tolist()])
    distance = TrainingDistance.of(vectors, labels[rows], of_evaluation)
    profile = read_profile(folder) or Profile()
    dataclasses.replace(profile, distance=distance).write(folder)


def _spread(rows: int, most: int) -> np.ndarray:
    """Return the numbers of evenly spread rows, int64 [at most `most`], ascending."""
    return np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(np.int64))


def _row_counts(result: FinetuningResult, rejects: Sequence[Reject]) -> dict[str, Any]:
    """Count rows, sequences and tokens of each file, and the rejects of all by reason."""
    each = {}
    for name, data in (("train", result.train), ("eval", result.evaluation)):
        if data is not None:
            truncation = Truncation.of(data)
            each[name] = {
                **row_counts(data.source),
                "sequences": len(data.rows.second_starts),
                "tokens": len(data.rows.ids),
                "rows_cut": truncation.rows_cut,
                "tokens_lost": truncation.tokens_lost,
            }
    if result.unlabeled is not None:
        each["unlabeled"] = row_counts(result.unlabeled)
    totals = {
        key: sum(counts[key] for counts in each.values())
        for key in ("rows_in", "rows_out", "rows_rejected")
    }
    return {**totals, "rejected": count_reasons(rejects), **each}


def _finetune_series(config: FinetuneConfig, options: RunOptions, record: JobRecord) -> None:
    """Train unfinished runs, and keep the best run of the settings with the best mean."""
    runs = config.runs()
    finished = []
    for number, (settings, single) in enumerate(runs, start=1):
        path = run_folder(config, settings, single.seed)
        named = named_settings({**settings, "seed": single.seed})
        options.console.info(f"run {number} of {len(runs)}: {named}")
        with record.stage(path.relative_to(config.output).as_posix()):
            manifest = run(
                dataclasses.replace(single, output=str(path)),
                dataclasses.replace(options, overwrite=False, is_part=True),
            )
        remove(path / "checkpoints")  # a finished run of a series is not extended
        finished.append(
            SeriesRun(settings=settings, seed=single.seed, path=path, manifest=manifest)
        )
        # Else graphs and variables of all runs stay in memory until the last one ends.
        keras.backend.clear_session()
        gc.collect()
    is_useful = record_series(record, config, combinations(finished))
    _suggest(config, record, is_useful=is_useful)

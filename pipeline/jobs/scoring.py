"""`score`: tables and an exported model to the same tables with predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.base.processor import vector_extensions
from bert_tf.base.wording import quantity
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.choice import ChosenEngine
from pipeline.beam.storage import use_storage_options
from pipeline.outputs.job import JobRecord, RunOptions, run_job
from pipeline.outputs.lock import holding_output
from pipeline.outputs.manifest import rejects_path
from pipeline.outputs.place import OutputPlace, check_place
from pipeline.outputs.places import exported_model
from pipeline.outputs.rejects import report_rejects
from pipeline.scoring.blocks import check_tables
from pipeline.scoring.engine_choice import (
    choose_engine,
    describe_candidates,
    engine_candidates,
    saved_config,
)
from pipeline.scoring.join import join_parts
from pipeline.scoring.plan import ScoringPlan, make_plan
from pipeline.scoring.preview import preview
from pipeline.scoring.running import log_cut_rows, open_parts, record_rows, run_blocks


def run(config: ScoreConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Scores the tables; returns the manifest, of a dry run what is known without scoring.

    An interrupted job keeps its finished blocks in a folder beside the output file, or in the
    output folder, and resumes from them.
    """
    use_storage_options(runner.options, runner.runner)
    config = dataclasses.replace(config, model=exported_model(config.model))
    plan = make_plan(config)
    # Before a trial takes its time; the job checks it again.
    place = OutputPlace(
        output=config.output,
        is_directory=plan.is_folder,
        temporary=plan.parts,
        may_be_remote=True,
    )
    check_place(place, [config.model, *(table.source for table in plan.tables)])
    if config.dry_run:
        candidates = engine_candidates(config, _saved(config, plan, options), runner)
        return preview(plan, options.console, engine=describe_candidates(candidates))
    with holding_output(
        config.output, is_directory=plan.is_folder, command="score", console=options.console
    ) as check_held:
        return _run_alone(config, plan, runner, options, check_held)


def _run_alone(
    config: ScoreConfig,
    plan: ScoringPlan,
    runner: RunnerConfig,
    options: RunOptions,
    check_held: Callable[[], None],
) -> dict[str, Any]:
    saved = _saved(config, plan, options)
    candidates = engine_candidates(config, saved, runner)
    check_tables(plan, options.console)
    engine = choose_engine(candidates, plan, runner, options.console)
    plan = dataclasses.replace(plan, engine=engine)
    is_kept = saved.get("engine") == engine.entry.name and "precision" not in saved
    config = dataclasses.replace(
        config,
        engine=engine.entry.name,
        precision=config.precision if is_kept else engine.precision,
    )
    return run_job(
        "score",
        config,
        options,
        output=config.output,
        output_is_directory=plan.is_folder,
        inputs={"model": [config.model], **plan.table_inputs},
        checked_inputs={"model": plan.engine.reads},
        body=lambda record: _score(
            plan.of_model(record.input_sha256("model")), engine, config, runner, options, record
        ),
        can_resume=True,
        temporary=plan.parts,
        check_held=check_held,
        may_be_remote=True,
    )


def _saved(config: ScoreConfig, plan: ScoringPlan, options: RunOptions) -> Mapping[str, Any]:
    """The config that a resumed job keeps its engine of; one of an earlier release has no
    precision to keep."""
    return {} if options.overwrite else saved_config(config, is_folder=plan.is_folder)


def _score(
    plan: ScoringPlan,
    engine: ChosenEngine,
    config: ScoreConfig,
    runner: RunnerConfig,
    options: RunOptions,
    record: JobRecord,
) -> None:
    is_resumed = open_parts(plan, options)
    record.console.info(f"engine: {engine.name}")
    with record.stage("score"):
        run_blocks(plan, runner, record.console)
    rejects = rejects_path(config.output)
    with record.stage("join"):
        counts = join_parts(plan, rejects)
    report_rejects(record.console, rejects, counts.rows_in, config.input)
    record_rows(record, counts, stage="score", is_resumed=is_resumed)
    if counts.cut:
        record.counts.update(counts.cut)
        log_cut_rows(record.console, counts)
    if plan.abstention is not None:
        record.counts["rows_abstained"] = counts.rows_abstained
        decided = counts.rows_out - counts.rows_abstained
        record.console.info(
            f"decided: {decided:,} of {quantity(counts.rows_out, 'row')} (coverage "
            f"{decided / max(counts.rows_out, 1):.4f}); the others have a probability below "
            f"{plan.abstention.below:g} and no label"
        )
    record.extra = {
        "engine": engine.entry.name,
        "precision": engine.precision,
        "vector_extensions": vector_extensions(),
        "columns": {**plan.columns.sources, "added": plan.added},
    }
    record.made = [(table.output, f"{table.source} with predictions") for table in plan.tables]
    record.list_rejects(rejects, sum(counts.rejected.values()))

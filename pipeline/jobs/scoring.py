"""`score`: tables and an exported model to the same tables with predictions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from bert_tf.base.wording import quantity
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.engines.exported_folder import read_task
from bert_tf.engines.registry import EngineEntry, resolve_engine
from pipeline.beam.runner import run_pipeline
from pipeline.beam.storage import use_storage_options
from pipeline.outputs.job import JobRecord, RunOptions, run_job
from pipeline.outputs.manifest import fingerprint, rejects_path
from pipeline.outputs.places import check_finished
from pipeline.outputs.rejected_rows import report_rejects
from pipeline.scoring.blocks import check_table
from pipeline.scoring.columns import scoring_columns
from pipeline.scoring.parts import join_parts
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.progress import showing_progress
from pipeline.scoring.tables import ScoredTable, list_tables
from pipeline.scoring.transforms import ScoreTables

_SPEED = ("batch_tokens", "block_rows")


def run(config: ScoreConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Scores the tables; returns the manifest.

    An interrupted job keeps its finished blocks in a folder beside the output file, or in the
    output folder, and goes on from there.
    """
    use_storage_options(runner.options)
    tables, is_folder = list_tables(config.input, config.output)
    engine = resolve_engine(config.engine, config.model)
    config = dataclasses.replace(config, engine=engine.name)  # an interrupted job keeps its engine
    plan = _make_plan(config, engine, tables, is_folder=is_folder)
    for table in tables:
        check_table(table, plan, options.console)

    def body(record: JobRecord) -> None:
        if options.overwrite:
            shutil.rmtree(plan.parts, ignore_errors=True)
        goes_on = plan.parts.is_dir()
        if goes_on:
            options.console.info(f"{plan.parts}: blocks of an interrupted run found; going on")
        plan.parts.mkdir(parents=True, exist_ok=True)
        options.console.info(f"engine: {engine.name}")
        with record.stage("score"), showing_progress(plan, options.console):
            run_pipeline(
                runner,
                lambda pipeline: (
                    pipeline | "ScoreTables" >> ScoreTables(plan, threads=_threads(runner))
                ),
                console=options.console,
                input_bytes=0,  # TensorFlow uses all cores of one process
            )
        with record.stage("join"):
            counts = join_parts(plan, rejects_path(config.output))
        report_rejects(record.console, rejects_path(config.output), counts.rows_in, config.input)
        record.counts = {
            "rows_in": counts.rows_in,
            "rows_out": counts.rows_out,
            "rows_rejected": counts.rows_in - counts.rows_out,
            "rejected": counts.rejected,
        }
        if not goes_on:
            speed = counts.rows_out / record.timings["score"]
            record.metrics = {"rows_per_second": round(speed, 1)}
        record.extra = {
            "engine": engine.name,
            "columns": {**plan.columns.sources, "added": plan.columns.predictions},
        }
        record.made = [(table.output, f"{table.source} with predictions") for table in tables]
        if counts.rejected:
            meaning = quantity(sum(counts.rejected.values()), "rejected row")
            record.made.append((str(rejects_path(config.output)), meaning))

    return run_job(
        "score",
        config,
        options,
        output=config.output,
        output_is_directory=is_folder,
        inputs={
            "model": [config.model],
            # In a folder every table keeps its name, so there that counts as well.
            **{
                f"input[{Path(table.source).name}]" if is_folder else "input": [table.source]
                for table in tables
            },
        },
        body=body,
        ignored_keys=_SPEED,
        can_resume=True,
        temporary=plan.parts,
    )


def _make_plan(
    config: ScoreConfig, engine: EngineEntry, tables: list[ScoredTable], *, is_folder: bool
) -> ScoringPlan:
    model, output = Path(config.model), Path(config.output).absolute()
    check_finished(model)
    columns = scoring_columns(config, read_task(model))
    decides = {
        "model": fingerprint(model)["sha256"],
        "engine": engine.name,
        "columns": columns.sources,
        "predictions": columns.predictions,
        "formats": [(table.source_format, table.output_format) for table in tables],
    }
    return ScoringPlan(
        model=str(model.absolute()),
        engine=engine,
        columns=columns,
        tables=tuple(tables),
        parts=output / ".parts" if is_folder else output.with_name(f".{output.name}.parts"),
        identity=hashlib.sha256(json.dumps(decides).encode()).hexdigest(),
        block_rows=config.block_rows,
        limit=config.limit,
        batch_tokens=config.batch_tokens,
        dialect=TableDialect.of(config),
    )


def _threads(runner: RunnerConfig) -> int | None:
    """Threads of one operation where the cores are shared by worker processes."""
    if runner.runner != "local" or runner.workers <= 1:
        return None
    return max(1, len(os.sched_getaffinity(0)) // runner.workers)

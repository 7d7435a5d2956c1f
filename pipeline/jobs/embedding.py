"""`embed`: the texts of tables to vectors, with the machinery of `score`."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.wording import quantity
from bert_tf.config.embedding_recipe import RAW_CLS
from bert_tf.config.sections import EmbedConfig, RunnerConfig
from bert_tf.data.tables.dialect import TABLE_FORMATS, TableDialect
from bert_tf.serving.signatures import MANY_CUT
from bert_tf.tasks.base.declaration import PredictionField
from pipeline.beam.files import match_files
from pipeline.beam.storage import use_storage_options
from pipeline.beam.stored_path import path_of
from pipeline.embedding.outputs import output_format, write_output
from pipeline.embedding.parts import finished_parts, write_vectors
from pipeline.embedding.source import VectorSource, describe_settings, open_vector_source
from pipeline.outputs.job import JobRecord, RunOptions, run_job
from pipeline.outputs.manifest import rejects_path
from pipeline.outputs.rejects import report_rejects
from pipeline.scoring.blocks import check_tables
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.join import join_rejects
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.row_values import column_types
from pipeline.scoring.running import open_parts, record_rows, run_blocks
from pipeline.scoring.tables import ScoredTable, row_format

_TOKEN_BLOCKS = 16  # times fewer rows per block, whose every token has a vector


def run(config: EmbedConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Writes the vectors of the tables' texts; returns the manifest.

    An interrupted job keeps its finished blocks in a folder beside the output and resumes with the
    others.
    """
    use_storage_options(runner.options, runner.runner)
    source = open_vector_source(
        config.model, config, tokens=config.tokens, prompt_name=config.prompt_name
    )
    plan = _make_plan(config, source)
    check_tables(plan, options.console)
    return run_job(
        "embed",
        config,
        options,
        output=config.output,
        output_is_directory=False,
        inputs={
            "model": [source.folder],
            # The order of several inputs is that of the vectors.
            **{f"input[{table.number}]": [table.source] for table in plan.tables},
        },
        checked_inputs={"model": source.settings.reads},
        body=lambda record: _embed(
            plan.of_model(record.input_sha256("model")), source, config, runner, options, record
        ),
        can_resume=True,
        temporary=plan.parts,
        may_be_remote=True,
    )


def _embed(
    plan: ScoringPlan,
    source: VectorSource,
    config: EmbedConfig,
    runner: RunnerConfig,
    options: RunOptions,
    record: JobRecord,
) -> None:
    settings = source.settings
    is_resumed = open_parts(plan, options)
    notes = [RAW_CLS] if source.recipe.is_raw_cls and not config.tokens else []
    for note in notes:
        record.console.warn(note)
    for note in source.directory.notes:
        record.console.info(note)
    record.console.info(f"vectors: {describe_settings(settings)}")
    named = [name for name, prompt in source.recipe.prompts.items() if prompt]
    if named and not settings.prompt and not config.prompt_name:
        record.console.info(
            f"{config.model} has prompts ({', '.join(named)}), none of which is for these texts; "
            "they get none. embed --prompt-name puts one before them"
        )
    with record.stage("embed"):
        run_blocks(plan, runner, record.console, label="embedding", write=write_vectors)
    with record.stage("join"):
        counts = join_rejects(plan, rejects_path(config.output))
        parts = finished_parts(plan)
        write_output(
            config.output,
            plan,
            rows=counts.rows_out,
            types=column_types(part["kinds"] for part in parts),
        )
    report_rejects(record.console, rejects_path(config.output), counts.rows_in, config.input)
    if counts.rows_out < counts.rows_in and config.output.endswith(".npy"):
        record.console.warn(
            f"{config.output}: has no vectors of rejected rows, so its rows are those of the "
            "inputs without them"
        )
    sums = {
        key: sum(part[key] for part in parts)
        for key in ("tokens", "rows_truncated", "tokens_truncated")
    }
    _report_truncated(record.console, counts.rows_out, sums, settings.max_seq_length)
    dimensions = settings.dimensions(source.directory.config.hidden_size)
    record_rows(record, counts, stage="embed", is_resumed=is_resumed)
    record.counts.update(sums)
    record.extra = {
        "columns": {
            **plan.columns.sources,
            "added": plan.added,
        },
        "embedding": {**dataclasses.asdict(settings), "dimensions": dimensions},
        "notes": notes,
    }
    of = "the tokens of " if config.tokens else ""
    record.made = [
        (
            config.output,
            f"vectors of {dimensions} dimensions of {of}{quantity(counts.rows_out, 'text')}",
        )
    ]
    if not config.tokens and not config.output.endswith(".jsonl"):
        record.next_command = [
            *("bert-pipeline", "search", "--queries", "queries.csv", "--corpus", config.output),
            *("--model", config.model, "--output", "results.jsonl"),
        ]
    record.list_rejects(rejects_path(config.output), sum(counts.rejected.values()))


def _make_plan(config: EmbedConfig, source: VectorSource) -> ScoringPlan:
    output = path_of(config.output).absolute()
    written = output_format(config.output)
    tables = tuple(
        ScoredTable(
            number=number,
            source=file.path,
            output=config.output,
            source_format=row_format(file.path, "parquet" if written == "parquet" else "jsonl"),
            output_format=written,
        )
        for number, file in enumerate(
            match_files(config.input, endings=TABLE_FORMATS, output=config.output)
        )
    )
    model = str(source.directory.path.absolute())
    columns = ScoringColumns(
        sources={"text": source.text_column},
        fields=tuple(PredictionField(name, "value") for name in source.settings.columns),
        can_rename=False,
    )
    rows = config.block_rows // _TOKEN_BLOCKS if config.tokens else config.block_rows
    return ScoringPlan(
        model=model,
        engine=source.settings,
        columns=columns,
        tables=tables,
        is_folder=False,
        parts=output.with_name(f".{output.name}.parts"),
        block_rows=max(1, rows),
        limit=config.limit,
        batch_tokens=config.batch_tokens,
        dialect=TableDialect.of(config),
    )


def _report_truncated(console: Console, rows: int, sums: dict[str, int], most: int) -> None:
    if not sums["rows_truncated"]:
        return
    line = (
        f"{sums['rows_truncated']:,} of {quantity(rows, 'text')} longer than {most} tokens: "
        f"{sums['tokens_truncated']:,} of {quantity(sums['tokens'], 'token')} left out"
    )
    is_large = sums["rows_truncated"] > MANY_CUT * rows
    console.warn(line) if is_large else console.info(line)

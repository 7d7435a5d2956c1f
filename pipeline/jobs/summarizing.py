"""`summarize`: tables of documents to the same tables with summaries, with the machinery of
`score`."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.config.embedding_recipe import RAW_CLS
from bert_tf.config.sections import RunnerConfig, SummarizeConfig
from bert_tf.config.sections.embedding import DEFAULT_SENTENCES
from bert_tf.data.tables.dialect import TableDialect
from pipeline.beam.storage import use_storage_options
from pipeline.beam.stored_path import path_of
from pipeline.corpus.sentences import make_splitter
from pipeline.embedding.source import VectorSource, describe_settings, open_vector_source
from pipeline.outputs.job import JobRecord, RunOptions, run_job
from pipeline.outputs.manifest import rejects_path
from pipeline.outputs.rejects import report_rejects
from pipeline.scoring.blocks import check_tables
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.join import join_parts
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.running import log_cut_rows, open_parts, record_rows, run_blocks
from pipeline.scoring.tables import list_tables
from pipeline.summarization.summarizer import FIELDS, SummarizerSettings

_SENTENCES = 16  # times fewer rows per block, whose every sentence has a vector


def run(config: SummarizeConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Writes the tables with summaries; returns the manifest.

    An interrupted job keeps its finished blocks and resumes with the others, as `score` does.
    """
    use_storage_options(runner.options, runner.runner)
    make_splitter(config.sentence_splitter, config.sentence_language)  # or refuses them
    source = open_vector_source(config.model, config)
    plan = _make_plan(config, source)
    check_tables(plan, options.console)
    return run_job(
        "summarize",
        config,
        options,
        output=config.output,
        output_is_directory=plan.is_folder,
        inputs={"model": [source.folder], **plan.table_inputs},
        checked_inputs={"model": plan.engine.reads},
        body=lambda record: _summarize(
            plan.of_model(record.input_sha256("model")), source, config, runner, options, record
        ),
        can_resume=True,
        temporary=plan.parts,
        may_be_remote=True,
    )


def _summarize(
    plan: ScoringPlan,
    source: VectorSource,
    config: SummarizeConfig,
    runner: RunnerConfig,
    options: RunOptions,
    record: JobRecord,
) -> None:
    is_resumed = open_parts(plan, options)
    notes = [RAW_CLS] if source.recipe.is_raw_cls else []
    for note in notes:
        record.console.warn(note)
    record.console.info(f"vectors of sentences: {describe_settings(source.settings)}")
    with record.stage("summarize"):
        run_blocks(plan, runner, record.console, label="summarizing")
    rejects = rejects_path(config.output)
    with record.stage("join"):
        counts = join_parts(plan, rejects)
    report_rejects(record.console, rejects, counts.rows_in, config.input)
    record_rows(record, counts, stage="summarize", is_resumed=is_resumed)
    record.counts.update(counts.cut)
    log_cut_rows(record.console, counts)
    record.extra = {
        "columns": {**plan.columns.sources, "added": plan.added},
        "embedding": dataclasses.asdict(source.settings),
        "notes": notes,
    }
    record.made = [(table.output, f"{table.source} with summaries") for table in plan.tables]
    record.list_rejects(rejects, sum(counts.rejected.values()))


def _make_plan(config: SummarizeConfig, source: VectorSource) -> ScoringPlan:
    tables, is_folder = list_tables(config.input, config.output)
    output = path_of(config.output).absolute()
    number = config.sentences or (None if config.ratio else DEFAULT_SENTENCES)
    settings = SummarizerSettings(
        embedder=source.settings,
        sentence_splitter=config.sentence_splitter,
        sentence_language=config.sentence_language,
        sentences=number,
        ratio=config.ratio,
        mmr_lambda=config.mmr_lambda,
    )
    return ScoringPlan(
        model=str(source.directory.path.absolute()),
        engine=settings,
        columns=ScoringColumns(
            sources={"text": source.text_column}, fields=FIELDS, can_rename=False
        ),
        tables=tuple(tables),
        is_folder=is_folder,
        parts=output / ".parts" if is_folder else output.with_name(f".{output.name}.parts"),
        block_rows=max(1, config.block_rows // _SENTENCES),
        limit=config.limit,
        batch_tokens=config.batch_tokens,
        dialect=TableDialect.of(config),
    )

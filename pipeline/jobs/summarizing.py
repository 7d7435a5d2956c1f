"""`summarize`: adds summaries to tables of documents."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from bert_tf.config.sections import RunnerConfig, SummarizeConfig
from bert_tf.config.sections.scoring import DEFAULT_SENTENCES
from pipeline.beam.storage import use_storage_options
from pipeline.corpus.sentences import make_splitter
from pipeline.embedding.source import VectorSource, describe_settings, open_vector_source
from pipeline.embedding.summarizer import FIELDS, SummarizerSettings
from pipeline.jobs.task_reports import warn_of_unfinished_run
from pipeline.outputs.job import JobRecord
from pipeline.outputs.job_spec import RunOptions
from pipeline.scoring.first_rows import check_tables
from pipeline.scoring.join import ScoringCounts
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.running import TableJob
from pipeline.scoring.tables import list_tables

_SENTENCES_OF_DOCUMENT = 16  # roughly, by which blocks are made smaller


def run(config: SummarizeConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Write the tables with summaries, or resume as `score` does; return the manifest.

    Args:
        config: of `summarize`.
        runner: where the pipeline runs.
        options: how the command runs.

    Raises:
        UsageError: model, tables and options do not fit each other.
        InputError: the model or a table is damaged.
    """
    use_storage_options(runner.options, runner.runner)
    make_splitter(config.sentence_splitter, config.sentence_language)  # or rejects them
    source = open_vector_source(config.model, config)
    warn_of_unfinished_run(config.model, options.console)
    tables, _ = list_tables(config.input, config.output)
    settings = SummarizerSettings(
        embedder=source.settings,
        sentence_splitter=config.sentence_splitter,
        sentence_language=config.sentence_language,
        sentences=config.sentences or (None if config.ratio else DEFAULT_SENTENCES),
        ratio=config.ratio,
        mmr_lambda=config.mmr_lambda,
    )
    plan = source.plan(
        config, tables, engine=settings, fields=FIELDS, vectors_per_row=_SENTENCES_OF_DOCUMENT
    )
    check_tables(plan, options.console)
    job = Summarizing(
        config=config, model=source.folder, plan=plan, runner=runner, options=options, source=source
    )
    return job.run()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summarizing(TableJob):
    """The job of `summarize`."""

    source: VectorSource

    label: ClassVar[str] = "summarizing"

    def announce(self, record: JobRecord) -> None:
        record.console.warn(*self.source.notes)
        record.console.info(f"vectors of sentences: {describe_settings(self.source.settings)}")

    def report(self, record: JobRecord, plan: ScoringPlan, counts: ScoringCounts) -> None:
        made_with = dataclasses.asdict(self.source.settings)
        record.extra |= {"embedding": made_with, "notes": self.source.notes}
        record.made = [(table.output, f"{table.source} with summaries") for table in plan.tables]

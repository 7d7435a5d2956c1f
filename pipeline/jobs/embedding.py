"""`embed`: writes vectors for the texts of tables."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from bert_tf.base.wording import quantity
from bert_tf.config.sections import EmbedConfig, RunnerConfig
from bert_tf.data.tables.dialect import TABLE_FORMATS
from bert_tf.serving.signatures import MANY_CUT
from bert_tf.tasks.base.declaration import PredictionField
from pipeline.beam.files import match_files
from pipeline.beam.storage import use_storage_options
from pipeline.embedding.outputs import output_format, write_output, write_vectors
from pipeline.embedding.source import VectorSource, describe_settings, open_vector_source
from pipeline.jobs.task_reports import warn_of_unfinished_run
from pipeline.outputs.job import JobRecord
from pipeline.outputs.job_spec import RunOptions
from pipeline.scoring.first_rows import check_tables
from pipeline.scoring.join import ScoringCounts, join_rejects
from pipeline.scoring.parts import Fact, WritePart
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.running import TableJob
from pipeline.scoring.tables import ScoredTable, partitions_of, row_format

_TOKENS_OF_TEXT = 16  # vectors of a text, roughly, by which blocks are made smaller


def run(config: EmbedConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Write the vectors of the tables' texts, or resume from finished blocks.

    Args:
        config: of `embed`.
        runner: where the pipeline runs.
        options: how the command runs.

    Returns:
        The manifest.

    Raises:
        UsageError: model, tables or output do not fit each other.
        InputError: the model or a table is damaged.
    """
    use_storage_options(runner.options, runner.runner)
    source = open_vector_source(
        config.model, config, tokens=config.tokens, prompt_name=config.prompt_name
    )
    warn_of_unfinished_run(config.model, options.console)
    written = output_format(config.output)
    row_type = "parquet" if written == "parquet" else "jsonl"
    files = match_files(config.input, endings=TABLE_FORMATS, output=config.output)
    partitions_of_files = partitions_of([file.path for file in files])
    tables = [
        ScoredTable(
            number=number,
            source=file.path,
            output=config.output,
            source_format=row_format(file.path, row_type),
            output_format=written,
            partitions=partitions,
        )
        for number, (file, partitions) in enumerate(zip(files, partitions_of_files, strict=True))
    ]
    plan = source.plan(
        config,
        tables,
        engine=source.settings,
        fields=tuple(PredictionField(name, "value") for name in source.settings.columns),
        vectors_per_row=_TOKENS_OF_TEXT if config.tokens else 1,
    )
    check_tables(plan, options.console)
    job = Embedding(
        config=config, model=source.folder, plan=plan, runner=runner, options=options, source=source
    )
    return job.run()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Embedding(TableJob):
    """The job of `embed`; all tables go to one output."""

    config: EmbedConfig
    source: VectorSource

    label: ClassVar[str] = "embedding"
    write_part: ClassVar[WritePart] = staticmethod(write_vectors)

    @property
    def inputs(self) -> dict[str, list[str]]:
        # The order of several inputs is that of the vectors.
        return {f"input[{table.number}]": [table.source] for table in self.plan.tables}

    def announce(self, record: JobRecord) -> None:
        config = self.config
        source = self.source
        settings = source.settings
        record.console.warn(*source.notes)
        record.console.info(*source.directory.notes)
        record.console.info(f"vectors: {describe_settings(settings)}")
        named = [name for name, prompt in source.recipe.prompts.items() if prompt]
        if named and not settings.prompt and not config.prompt_name:
            record.console.info(
                f"{config.model} has prompts ({', '.join(named)}), but none for these texts, so "
                "none is prepended; embed --prompt-name prepends one"
            )

    def join(self, plan: ScoringPlan, rejects: Path) -> ScoringCounts:
        counts = join_rejects(plan, rejects)
        write_output(self.config.output, plan, counts)
        return counts

    def report(self, record: JobRecord, plan: ScoringPlan, counts: ScoringCounts) -> None:
        config = self.config
        settings = self.source.settings
        if counts.rows_out < counts.rows_in and config.output.endswith(".npy"):
            record.console.warn(
                f"{config.output}: has no vectors for rejected rows, so its rows are the usable "
                "rows of the inputs"
            )
        sums = counts.sums
        truncated = sums[Fact.ROWS_TRUNCATED]
        if truncated:
            is_many = truncated > MANY_CUT * counts.rows_out
            show = record.console.warn if is_many else record.console.info
            show(
                f"{truncated:,} of {quantity(counts.rows_out, 'text')} longer than "
                f"{settings.max_seq_length} tokens: {sums[Fact.TOKENS_TRUNCATED]:,} of "
                f"{quantity(sums[Fact.TOKENS], 'token')} left out"
            )
        dimensions = settings.dimensions(self.source.directory.config.hidden_size)
        made_with = {**dataclasses.asdict(settings), "dimensions": dimensions}
        record.extra |= {"embedding": made_with, "notes": self.source.notes}
        texts = quantity(counts.rows_out, "text")
        of = f"the tokens of {texts}" if config.tokens else texts
        record.made = [(config.output, f"vectors of {dimensions} dimensions of {of}")]
        if not config.tokens and not config.output.endswith(".jsonl"):
            files = {"queries": "queries.csv", "corpus": config.output}
            record.suggest("search", **files, model=config.model, output="results.jsonl")

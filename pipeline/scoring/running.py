"""The skeleton of jobs that run a model over tables: parts, pipeline, counts and dry run."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from bert_tf.base.console import Advance, Console
from bert_tf.base.files import remove
from bert_tf.base.processor import usable_cores
from bert_tf.base.wording import quantity, shown_duration
from bert_tf.config.sections import EmbedConfig, RunnerConfig, ScoreConfig, SummarizeConfig
from bert_tf.data.tables.dialect import compression_of
from bert_tf.data.tables.formats.conll import is_conll
from bert_tf.data.tables.formats.parquet import open_parquet
from bert_tf.data.tables.repeated_ids import repeated_ids_warning
from bert_tf.data.tables.tables import TableBlock, fixed_columns, table_format
from bert_tf.serving.signatures import MANY_CUT, MOST_MASKS
from pipeline.beam.progress import Progress
from pipeline.beam.runner import run_pipeline
from pipeline.beam.storage import list_stored
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import rejects_path
from pipeline.outputs.rejects import report_rejects, warn_of_rejects
from pipeline.scoring.blocks import read_summary
from pipeline.scoring.first_rows import read_first_block
from pipeline.scoring.join import ScoringCounts, join_parts
from pipeline.scoring.parts import Fact, WritePart, write_part
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import ScoredTable
from pipeline.scoring.transforms import ScoreTables

# Facts of parts whose sums are counts of the job.
_SUMS = (
    Fact.ROWS_CUT,
    Fact.TOKENS_LOST,
    Fact.MASKS_LOST,
    Fact.WORDS_WITHOUT_TOKENS,
    Fact.TOKENS,
    Fact.ROWS_TRUNCATED,
    Fact.TOKENS_TRUNCATED,
)


class RowsLine:
    """Formats progress on rows: done of all, rows per second, padding and the time left.

    It is a `ProgressLine`. The speed excludes rows of earlier runs, and the time until the first
    rows are done, in which the model is loaded. The total is known when all tables are counted.

    Args:
        label: the work on the rows.
        tables: number of tables.
    """

    def __init__(self, *, label: str, tables: int):
        self._label = label
        self._tables = tables
        self._first: tuple[float, int] | None = None

    def __call__(self, done: Counter[int], seconds: float) -> Advance | None:
        new = done[Progress.ROWS]
        rows = new + done[Progress.EARLIER_ROWS]
        if not rows:
            return None
        if new and self._first is None:
            self._first = (seconds, new)
        is_counted = done[Progress.TABLES] >= self._tables
        total = max(done[Progress.TABLE_ROWS], rows)
        parts = [f"{rows:,} of {quantity(total, 'row')}" if is_counted else quantity(rows, "row")]
        speed = 0.0
        if self._first is not None:
            first_seconds, first_rows = self._first
            if seconds > first_seconds:
                speed = (new - first_rows) / (seconds - first_seconds)
        if speed:
            parts.append(f"{speed:,.1f} rows/s")
        padded = done[Progress.PADDED_TOKENS]
        if padded:
            parts.append(f"{1 - done[Progress.TOKENS] / padded:.0%} padding")
        if speed and is_counted and total > rows:
            parts.append(f"{shown_duration((total - rows) / speed)} left")
        text = f"{self._label}: {', '.join(parts)}"
        fraction = rows / total if is_counted else None
        return Advance(text, fraction, says_time_left=True)


def threads_per_worker(runner: RunnerConfig) -> int | None:
    """Return the threads of a local worker process; None on remote runners."""
    if runner.runner != "local":
        return None
    return max(1, usable_cores() // max(1, runner.workers))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableJob:
    """A job that runs a model over tables block by block, and resumes with the blocks left.

    Attributes:
        config: names the inputs and the output.
        model: path of the model's folder.
        plan: tables, model and columns.
        runner: of the pipeline.
        options: of the run, such as resuming.
        label: the work on the rows, for the line of progress.
    """

    config: ScoreConfig | EmbedConfig | SummarizeConfig
    model: str
    plan: ScoringPlan
    runner: RunnerConfig
    options: RunOptions

    label: ClassVar[str]
    write_part: ClassVar[WritePart] = staticmethod(write_part)

    @property
    def inputs(self) -> dict[str, list[str]]:
        """Return tables by the manifest's input names; in a folder by their output's name."""
        return {
            f"input[{table.name}]" if self.plan.is_folder else "input": [table.source]
            for table in self.plan.tables
        }

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            config=self.config,
            inputs={"model": [self.model], **self.inputs},
            is_folder=self.plan.is_folder,
            checked_inputs={"model": self.plan.engine.reads},
            can_resume=True,
            temporary=self.plan.parts,
            may_be_remote=True,
        )

    def run(self, check_held: Callable[[], None] | None = None) -> dict[str, Any]:
        """Run the job unless its output is finished; see `run_job`."""
        return run_job(self.spec, self.options, self._make, check_held=check_held)

    def announce(self, record: JobRecord) -> None:
        """Print the settings of the computation."""
        raise NotImplementedError

    def join(self, plan: ScoringPlan, rejects: Path) -> ScoringCounts:
        """Write the outputs from the finished parts, and the file of rejects."""
        return join_parts(plan, rejects)

    def report(self, record: JobRecord, plan: ScoringPlan, counts: ScoringCounts) -> None:
        """Add the command's own facts to the record."""
        raise NotImplementedError

    def _make(self, record: JobRecord) -> None:
        console = record.console
        rejects = rejects_path(self.config.output)
        (model,) = (item for item in record.identity["inputs"] if item["key"] == "model")
        plan = self.plan.of_model(model["sha256"])
        # Parts of another run would be taken for finished ones.
        if self.options.overwrite:
            remove(plan.parts)
        is_resumed = plan.parts.is_dir()
        if is_resumed:
            console.info(f"{plan.parts}: resuming with the finished blocks of an earlier run")
        plan.parts.mkdir(parents=True, exist_ok=True)
        self.announce(record)
        threads = threads_per_worker(self.runner)
        score = ScoreTables(plan, threads=threads, write=type(self).write_part)
        with record.stage(self.spec.command):
            run_pipeline(
                self.runner,
                lambda pipeline: pipeline | "ScoreTables" >> score,
                console=console,
                input_bytes=0,  # TensorFlow uses all cores of one process
                takes_gpu=True,
                progress=RowsLine(label=self.label, tables=len(plan.tables)),
            )
        with record.stage("join"):
            counts = self.join(plan, rejects)
        console.warn(*_repeated_ids(plan))
        report_rejects(console, rejects, counts.rows_in, self.config.input)
        console.info(f"{counts.rows_out:,} of {quantity(counts.rows_in, 'row')} written")
        record.counts = {
            "rows_in": counts.rows_in,
            "rows_out": counts.rows_out,
            "rows_rejected": sum(counts.rejected.values()),
            "rejected": counts.rejected,
            **{name.value: counts.sums[name] for name in _SUMS if name in counts.sums},
        }
        # The time of a resumed run is not that of all its rows.
        if not is_resumed:
            speed = counts.rows_scored / record.timings[self.spec.command]
            record.metrics["rows_per_second"] = round(speed, 1)
        padded = counts.sums[Fact.PADDED_TOKENS]
        if padded:
            fraction = 1 - counts.sums[Fact.BATCH_TOKENS] / padded
            record.metrics["padding_fraction"] = round(fraction, 4)
        _log_losses(console, counts)
        record.extra["columns"] = {**plan.columns.sources, "added": plan.added}
        self.report(record, plan, counts)
        record.list_rejects(rejects, sum(counts.rejected.values()))


def _repeated_ids(plan: ScoringPlan) -> Iterator[str]:
    """Yield warnings of ids that several rows of a table have, if the user names their column."""
    for table in plan.tables:
        summary = read_summary(table, plan)
        if summary.repeated_ids:
            yield repeated_ids_warning(
                table.source,
                str(plan.dialect.id_column),
                summary.repeated_id,
                summary.repeated_ids,
            )


def _log_losses(console: Console, counts: ScoringCounts) -> None:
    """Report tokens, masks and words that the model did not read; warn of many."""
    cut = counts.sums[Fact.ROWS_CUT]
    lost = counts.sums[Fact.TOKENS_LOST]
    if cut:
        # All rows are scored, but `--label-next` writes only some.
        fraction = cut / max(counts.rows_scored, 1)
        show = console.warn if fraction > MANY_CUT else console.info
        rows = quantity(counts.rows_scored, "row")
        show(
            f"{cut:,} of {rows} ({fraction:.1%}) are too long for the model and lose "
            f"{quantity(lost, 'token')}"
        )
    masks = counts.sums[Fact.MASKS_LOST]
    if masks:
        console.warn(
            f"{quantity(masks, 'mask')} not predicted: only the first {MOST_MASKS} of a text are"
        )
    words = counts.sums[Fact.WORDS_WITHOUT_TOKENS]
    if words:
        verb = "has" if words == 1 else "have"
        console.info(
            f"{quantity(words, 'word')} {verb} no token (blanks, control characters, lone "
            "accents); tagged as inside the entity around them, or outside any"
        )


_FIRST_ROWS = 1000  # of a table, read by a dry run


def preview(plan: ScoringPlan, console: Console, *, engine: str) -> dict[str, Any]:
    """Report the tables to read and the outputs; write nothing.

    Args:
        plan: of the job.
        engine: its name.

    Returns:
        `engine`, `tables` with the estimated `rows` of each (None if unknown), and the `counts` of
        the rows read.

    Raises:
        InputError, UsageError: a fault would end the job.
    """
    plan = dataclasses.replace(plan, block_rows=min(plan.block_rows, _FIRST_ROWS))
    console.info(f"engine: {engine}")
    read = ", ".join(f"{name} from {column!r}" for name, column in plan.columns.sources.items())
    tables = []
    rows_in = 0
    rejected: Counter[str] = Counter()
    for table in plan.tables:
        block = read_first_block(table, plan, console)
        rows, is_exact = _estimated_rows(table, block, plan)
        about = "unknown"
        if rows is not None:
            about = f"{rows:,}" if is_exact else f"about {rows:,}"
        added = plan.columns.added(table.output_format)
        console.info(
            f"{table.source} -> {table.output}\n"
            f"  reads: {read}\n"
            f"  adds: {', '.join(added)}\n"
            f"  rows: {about}; of the first {block.rows_in:,} rejected: {len(block.rejects):,}"
        )
        warn_of_rejects(console, block.rejects, block.rows_in, table.source)
        rows_in += block.rows_in
        rejected.update(reject.reason for reject in block.rejects)
        tables.append(
            {"source": table.source, "output": table.output, "rows": rows, "added": list(added)}
        )
    console.info(f"dry run of {quantity(len(tables), 'table')}: nothing was written")
    return {
        "dry_run": True,
        "engine": engine,
        "tables": tables,
        "counts": {"rows_in": rows_in, "rejected": dict(rejected)},
    }


def _estimated_rows(
    table: ScoredTable, block: TableBlock, plan: ScoringPlan
) -> tuple[int | None, bool]:
    """Estimate the rows of a table.

    Args:
        table: to read.
        block: its first block.
        plan: with the limit of rows.

    Returns:
        The number, None if unknown, and whether it is exact.
    """
    limit = plan.limit
    if block.rows_in < plan.block_rows:
        return block.rows_in, True
    if is_conll(table.source):
        return None, False
    if table_format(table.source) == "parquet":
        with open_parquet(table.source, plan.open_table) as (_, file):
            rows = file.metadata.num_rows
        return (min(rows, limit) if limit else rows), True
    if (
        not block.raw_rows
        or compression_of(table.source)
        or fixed_columns(table.source, plan.open_table)
    ):
        return None, False
    (size,) = list_stored(table.source).values()
    encoded = (row.encode(plan.dialect.encoding, "replace") for row in block.raw_rows)
    per_row = (sum(map(len, encoded)) + len(block.raw_rows)) / len(block.raw_rows)
    rows = max(round(size / per_row), block.rows_in)
    is_limited = bool(limit) and rows >= limit
    return (limit if is_limited else rows), False

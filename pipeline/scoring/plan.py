"""The plan of a scoring job, made before anything is read; every worker has a copy."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from bert_tf.base.errors import NoRowsError, UsageError
from bert_tf.config.bert_file import read_task
from bert_tf.config.sections.scoring import ScoreConfig
from bert_tf.data.tables.cells import words_of
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.formats.conll import COLUMN_NUMBER, is_conll
from bert_tf.data.tables.tables import has_column, read_table_blocks
from bert_tf.data.tables.text_files import open_local
from bert_tf.data.tables.word_blocks import TOKENS, are_single_words
from bert_tf.engines.choice import possible_engines
from bert_tf.engines.engine import EngineLoader
from bert_tf.engines.registry import check_is_exported
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.prediction_rows import Abstention
from bert_tf.tasks.explaining.words import check_explainable
from bert_tf.tasks.profile.drift import DriftReference
from bert_tf.tasks.profile.profile import (
    PROFILE,
    evaluated_rows,
    read_profile,
    training_distance,
)
from bert_tf.tasks.profile.thresholds import Threshold, choose_threshold
from bert_tf.tasks.registry import TASKS, declared_task
from pipeline.beam.storage import open_stored
from pipeline.beam.stored_path import path_of
from pipeline.outputs.job_folder import check_finished
from pipeline.scoring.columns import DELIMITED_FORMATS, ScoringColumns, scoring_columns
from pipeline.scoring.label_next import MarkedRows, candidates_for
from pipeline.scoring.tables import CONLL, ScoredTable, list_tables

WEIGHTS = "model.safetensors"
_SHOWN = 30  # least certain rows on the page
_SAMPLE_ROWS = 100  # that are searched for lists of words


class Decision(NamedTuple):
    """Names of the predicted label of a task and of its probability."""

    label: str
    score: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockFiles:
    """The intermediate files of one block, absolute paths.

    Attributes:
        rows: its rows, until they are scored.
        part: its scored rows as they are in the output.
        rejects: its rejected rows.
        done: counts and checksums of the finished part, written last.
    """

    rows: Path
    part: Path
    rejects: Path
    done: Path


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringPlan:
    """All that workers need to know of a scoring job.

    Attributes:
        model: absolute path.
        columns: to read and to add.
        tables: the inputs and outputs.
        is_folder: whether the outputs are files of one folder.
        may_be_empty: whether tables may all be without rows, since others are scored already.
        parts: absolute path of a folder for blocks and parts, on a disk that all workers share.
        block_rows: rows of a block.
        limit: rows read of each table; 0 for all.
        batch_tokens: tokens per batch, padding included.
        identity: hash of the model and settings on which the content of parts depends; empty until
            `of_model`.
        escapes_formulas: whether cells of CSV and TSV that look like formulas get an apostrophe.
        abstention: limits below or beyond which predictions are left out; None without any.
        threshold: of `--target-accuracy`, on the model's evaluation rows; None without the flag.
        drift: reference to compare rows with; None to compare none.
        marked: choice of rows that are read again when all are scored; None for none.
        label_next: number of marked rows to write; None to write all rows.
        decision: of tasks that choose one label; None for other tasks.
        explains: whether the predictions of the marked rows are explained.
        dialect: of the inputs.
        folder: base of relative paths of inputs; a worker may have another working folder.
    """

    model: str
    engine: EngineLoader
    columns: ScoringColumns
    tables: tuple[ScoredTable, ...]
    is_folder: bool
    parts: Path
    block_rows: int
    limit: int
    batch_tokens: int
    identity: str = ""
    may_be_empty: bool = False
    escapes_formulas: bool = False
    abstention: Abstention | None = None
    threshold: Threshold | None = None
    drift: DriftReference | None = None
    marked: MarkedRows | None = None
    label_next: int | None = None
    explains: bool = False
    decision: Decision | None = None
    dialect: TableDialect = PLAIN
    folder: str = dataclasses.field(default_factory=lambda: str(Path.cwd()))

    def of_model(self, sha256: str) -> Self:
        """Add the identity, which also depends on the SHA-256 of the model's folder."""
        decides: dict[str, Any] = {
            "model": sha256,
            "engine": self.engine.name,
            "columns": self.columns.sources,
            "predictions": [list(self.columns.added(table.output_format)) for table in self.tables],
            "top": self.columns.probabilities and self.columns.probabilities.top,
            "escape_formulas": self.escapes_formulas,
            "abstain_below": self.abstention and self.abstention.below,
            "formats": [(table.source_format, table.output_format) for table in self.tables],
        }
        if self.abstention is not None and self.abstention.beyond is not None:
            decides["abstain_far"] = self.abstention.beyond
        if self.marked is not None:
            decides["marked"] = dataclasses.astuple(self.marked)
        if self.drift is not None:
            decides["drift"] = True  # parts have counts
        if self.columns.label_sets is not None:
            decides["label_sets"] = self.columns.label_sets.identity()
        identity = hashlib.sha256(json.dumps(decides).encode()).hexdigest()
        return dataclasses.replace(self, identity=identity)

    def open_table(self, path: str) -> BinaryIO:
        """Open an input by its path in the job's own process, see `open_input`."""
        if "://" not in path:
            path = str(Path(self.folder) / path)
        return open_input(path)

    @property
    def added(self) -> list[str]:
        """Return the names of the columns that are added to any output."""
        names: dict[str, None] = {}
        for table in self.tables:
            names.update(dict.fromkeys(self.columns.added(table.output_format)))
        return list(names)

    def summary_file(self, table: int) -> Path:
        """Return the file of a table's `TableSummary`, written after all its blocks."""
        return self.parts / f"table-{table:05d}.json"

    def files(self, table: int, block: int) -> BlockFiles:
        """Return the files of a block, by the numbers of table and block."""
        number = f"{table:05d}-{block:08d}"
        return BlockFiles(
            rows=self.parts / f"block-{number}.json",
            part=self.parts / f"part-{number}.rows",
            rejects=self.parts / f"part-{number}.rejects.jsonl",
            done=self.parts / f"part-{number}.done.json",
        )


def make_plan(config: ScoreConfig, named: Mapping[str, str] | None = None) -> ScoringPlan:
    """Resolve a config: tables, engine and columns.

    Args:
        config: of `score`.
        named: inputs of earlier runs by the names of their outputs, see `list_tables`.

    Raises:
        UsageError: something does not fit the model.
        InputError: its `task.json` is damaged.
    """
    check_is_exported(config.model)
    check_finished(config.model)
    task = read_task(config.model)
    has_words = task is not None and declared_task(task, config.model).words is not None
    tables, is_folder = list_tables(config.input, config.output, has_words=has_words, named=named)
    is_delimited = any(table.output_format in DELIMITED_FORMATS for table in tables)
    if config.escape_formulas and not is_delimited:
        raise UsageError(
            "--escape-formulas: is only for CSV and TSV, which spreadsheets open; leave it out"
        )
    dialect = TableDialect.of(config)
    columns = scoring_columns(
        config,
        task,
        lambda named_column, known: words_column(tables[0], dialect, named_column, known),
        lambda name: any(has_column(table.source, name, dialect, open_input) for table in tables),
    )
    if any(table.output_format == CONLL for table in tables):
        for flag, is_given in (
            ("--keep-rejected", config.keep_rejected),
            ("--explain", bool(config.explain)),
        ):
            if is_given:
                raise UsageError(
                    f"{flag}: columns of CoNLL have no place for its column; write .jsonl"
                )
    if config.keep_rejected and (config.explain or config.label_next is not None):
        raise UsageError(
            "--keep-rejected: cannot be combined with --explain and --label-next; leave one out"
        )
    # Rows are found again by their place among the scored ones of a block.
    marked = None
    if not config.keep_rejected:
        marked = _marked_rows(config, declared_task(task, config.model))
    engine = possible_engines(config.engine, config.precision, config.model)[0]
    threshold = _threshold(config)
    abstention = _abstention(config, declared_task(task, config.model), threshold)
    return ScoringPlan(
        model=str(Path(config.model).absolute()),
        engine=engine,
        columns=columns,
        tables=tuple(tables),
        is_folder=is_folder,
        parts=parts_folder(config.output, is_folder=is_folder),
        block_rows=config.block_rows,
        limit=config.limit,
        batch_tokens=config.batch_tokens,
        escapes_formulas=config.escape_formulas,
        abstention=abstention,
        threshold=threshold,
        drift=_drift_reference(config),
        marked=marked,
        label_next=config.label_next,
        explains=config.explain > 0,
        decision=_decision(declared_task(task, config.model)),
        dialect=dialect,
    )


def _abstention(
    config: ScoreConfig, declared: ServedTaskDeclaration, threshold: Threshold | None
) -> Abstention | None:
    """Return the limits below or beyond which predictions are left out; None without any.

    Raises:
        UsageError: the task has no probability or no distances, or the model has no distances of
            its training rows.
    """
    below = config.abstain_below if threshold is None else threshold.below
    flag = "--abstain-far"
    if config.abstain_far is None:
        return None if below is None else Abstention.of(declared, below, config.model)
    if not declared.has_distances:
        names = ", ".join(name for name, task in TASKS.items() if task.has_distances)
        raise UsageError(
            f"{flag}: is for {names}, whose training rows have one label each; "
            f"{config.model} does {declared.name}, so leave it out"
        )
    if not (Path(config.model) / WEIGHTS).is_file():
        raise UsageError(
            f"{flag}: {config.model} has no {WEIGHTS}, whose vectors of texts it compares; export "
            "the model again, without --layout serving"
        )
    abstention = Abstention.of(declared, below or 0.0, config.model, flag=flag)
    beyond = training_distance(config.model, flag).limit(config.abstain_far, flag)
    return dataclasses.replace(abstention, beyond=beyond)


def _threshold(config: ScoreConfig) -> Threshold | None:
    """Choose the threshold of `--target-accuracy`; None without the flag.

    Raises:
        UsageError: there are no evaluation rows, or no threshold reaches the accuracy on them.
    """
    if config.target_accuracy is None:
        return None
    rows = evaluated_rows(config.model, "--target-accuracy")
    return choose_threshold(rows.score, rows.is_right, config.target_accuracy)


def _marked_rows(config: ScoreConfig, declared: ServedTaskDeclaration) -> MarkedRows | None:
    """Return the choice of rows that are read again; None if no flag needs any.

    Raises:
        UsageError: the task or the model lacks something that a flag needs.
    """
    if config.explain:
        check_explainable(config.model)
        if config.explain_rows == "first":
            return MarkedRows(most=config.explain)
        return MarkedRows.least_certain_of(
            declared, config.explain, flag="--explain-rows uncertain", model=config.model
        )
    if config.label_next is None:
        if declared.probabilities is None:
            return None
        return MarkedRows.least_certain_of(declared, _SHOWN, flag="", model=config.model)
    if not (Path(config.model) / WEIGHTS).is_file():
        raise UsageError(
            f"--label-next: {config.model} has no {WEIGHTS}, whose vectors of texts it compares; "
            "export the model again, without --layout serving"
        )
    most = candidates_for(config.label_next)
    return MarkedRows.least_certain_of(declared, most, flag="--label-next", model=config.model)


def _decision(declared: ServedTaskDeclaration) -> Decision | None:
    decided = (field for field in declared.predictions if field.decided_by is not None)
    return next((Decision(field.name, str(field.decided_by)) for field in decided), None)


def _drift_reference(config: ScoreConfig) -> DriftReference | None:
    """Read the model's profile of its rows; UsageError if a flag needs more."""
    profile = read_profile(config.model)
    reference = None if profile is None else DriftReference.of(profile)
    if reference is None and config.fail_on_drift:
        raise UsageError(
            f"--fail-on-drift: {config.model} has no {PROFILE} to compare rows with: an earlier "
            "release fine-tuned or exported it; run finetune and export again"
        )
    return reference


def parts_folder(output: str, *, is_folder: bool) -> Path:
    """Return the folder of blocks and parts: in an output folder, else beside the output file."""
    path = path_of(output).absolute()
    return path / ".parts" if is_folder else path.with_name(f".{path.name}.parts")


def words_column(
    table: ScoredTable, dialect: TableDialect, named: str | None, known: str | None
) -> str | None:
    """Return the column of words of a job's first table, None if its rows are texts.

    Args:
        table: the first table.
        dialect: of the table.
        named: the column that the user names; None if none.
        known: the model's own column.

    Raises:
        UsageError: a CoNLL column is no number, or each row is a word.
    """
    if is_conll(table.source):
        if named is not None and not COLUMN_NUMBER.fullmatch(named):
            raise UsageError(f"--tokens-column {named}: columns of CoNLL files are numbers, from 1")
        return named or known or TOKENS
    blocks = read_table_blocks(
        table.source, dialect=dialect, opener=open_input, block_rows=_SAMPLE_ROWS
    )
    try:
        first = next(blocks)
    except NoRowsError as error:
        columns = error.columns
        rows = []
    else:
        columns = first.columns
        rows = first.rows
    candidates = [name for name in (known, TOKENS) if name in columns]
    if rows:  # Prodigy's tokens are objects, beside a text
        candidates = [
            name for name in candidates if any(words_of(row.get(name)) is not None for row in rows)
        ]
    column = named or next(iter(candidates), None)
    if column is not None and are_single_words([row.get(column) for row in rows]):
        raise UsageError(
            f"{table.source}: most rows hold a single word in {column!r}, and each would be a "
            "sentence; write a word per line with a blank line between sentences to a file whose "
            "name ends in .conll, or name a column of texts by --text-column"
        )
    return column


def open_input(path: str) -> BinaryIO:
    """Open stored bytes.

    Raises:
        UsageError: the storage is unknown, or the file cannot be read.
    """
    return open_stored(path) if "://" in path else open_local(path)

"""The plan of a scoring job, made before anything is read; every worker has a copy."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import BinaryIO, Self

from bert_tf.base.errors import NoRowsError, UsageError
from bert_tf.config.bert_file import read_task
from bert_tf.config.sections.scoring import ScoreConfig
from bert_tf.data.tables.cells import words_of
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.tables import has_column, read_table_blocks
from bert_tf.data.tables.text_files import open_local
from bert_tf.data.tables.word_blocks import COLUMN_NUMBER, TOKENS, are_single_words, is_conll
from bert_tf.engines.choice import possible_engines
from bert_tf.engines.engine import EngineLoader
from bert_tf.engines.registry import check_is_exported
from bert_tf.tasks.base.prediction_rows import Abstention
from bert_tf.tasks.registry import declared_task
from pipeline.beam.storage import open_stored
from pipeline.beam.stored_path import path_of
from pipeline.outputs.place import check_finished
from pipeline.scoring.columns import DELIMITED_FORMATS, ScoringColumns, scoring_columns
from pipeline.scoring.tables import ScoredTable, list_tables

_SAMPLE_ROWS = 100  # that tell whether lists of words are in them


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockFiles:
    """The intermediate files of one block, absolute paths.

    Attributes:
        rows: its rows, until they are scored.
        part: its scored rows as they are in the output.
        rejects: its rejected rows.
        done: counts and checksums of the finished part: written last.
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
        parts: absolute path of a folder for blocks and parts, on a disk that all workers share.
        block_rows: rows of a block.
        limit: rows read of each table; 0 for all.
        batch_tokens: tokens per batch, padding included.
        identity: hash of all that decides a part's content but its block; empty until `of_model`.
        escapes_formulas: whether cells of CSV and TSV that look like formulas get an apostrophe.
        abstention: which predictions are left out; None for none.
        dialect: how the inputs are written.
        folder: where relative paths of inputs begin; a worker may have another working folder.
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
    escapes_formulas: bool = False
    abstention: Abstention | None = None
    dialect: TableDialect = PLAIN
    folder: str = dataclasses.field(default_factory=lambda: str(Path.cwd()))

    def of_model(self, sha256: str) -> Self:
        """Add the identity, which depends on the SHA-256 of the model's folder too."""
        decides = {
            "model": sha256,
            "engine": self.engine.name,
            "columns": self.columns.sources,
            "predictions": [list(self.columns.added(table.output_format)) for table in self.tables],
            "top": self.columns.probabilities and self.columns.probabilities.top,
            "escape_formulas": self.escapes_formulas,
            "abstain_below": self.abstention and self.abstention.below,
            "formats": [(table.source_format, table.output_format) for table in self.tables],
        }
        identity = hashlib.sha256(json.dumps(decides).encode()).hexdigest()
        return dataclasses.replace(self, identity=identity)

    def open_table(self, path: str) -> BinaryIO:
        """Open an input as the job's own process would, see `open_input`."""
        return open_input(path if "://" in path else str(Path(self.folder) / path))

    @property
    def added(self) -> list[str]:
        formats = dict.fromkeys(table.output_format for table in self.tables)
        names = (name for each in formats for name in self.columns.added(each))
        return list(dict.fromkeys(names))

    def summary_file(self, table: int) -> Path:
        """Return the file of a table's `TableSummary`, written after all its blocks."""
        return self.parts / f"table-{table:05d}.json"

    def files(self, table: int, block: int) -> BlockFiles:
        number = f"{table:05d}-{block:08d}"
        return BlockFiles(
            rows=self.parts / f"block-{number}.json",
            part=self.parts / f"part-{number}.rows",
            rejects=self.parts / f"part-{number}.rejects.jsonl",
            done=self.parts / f"part-{number}.done.json",
        )


def make_plan(config: ScoreConfig) -> ScoringPlan:
    """Resolve a config: tables, engine and columns.

    Raises:
        UsageError: something does not fit the model.
        InputError: its `task.json` is damaged.
    """
    check_is_exported(config.model)
    check_finished(config.model)
    task = read_task(config.model)
    has_words = task is not None and declared_task(task, config.model).words is not None
    tables, is_folder = list_tables(config.input, config.output, has_words=has_words)
    if config.escape_formulas and not any(
        table.output_format in DELIMITED_FORMATS for table in tables
    ):
        raise UsageError(
            "--escape-formulas: is only for CSV and TSV, which spreadsheets open; leave it out"
        )
    dialect = TableDialect.of(config)
    columns = scoring_columns(
        config,
        task,
        lambda given, known: words_column(tables[0], dialect, given, known),
        lambda name: any(has_column(each.source, name, dialect, open_input) for each in tables),
    )
    engine = possible_engines(config.engine, config.precision, config.model)[0]
    abstention = None
    if config.abstain_below is not None:
        declared = declared_task(task, config.model)
        abstention = Abstention.of(declared, config.abstain_below, config.model)
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
        dialect=dialect,
    )


def parts_folder(output: str, *, is_folder: bool) -> Path:
    """Return the folder of blocks and parts: in an output folder, else beside the output file."""
    path = path_of(output).absolute()
    return path / ".parts" if is_folder else path.with_name(f".{path.name}.parts")


def words_column(
    table: ScoredTable, dialect: TableDialect, given: str | None, known: str | None
) -> str | None:
    """Return the column of words of a job's first table, None if its rows are texts.

    Args:
        table: the first one.
        dialect: how it is written.
        given: the column that the user names; None if none.
        known: the model's own column.

    Raises:
        UsageError: a CoNLL column is no number, or each row is a word.
    """
    if is_conll(table.source):
        if given is not None and not COLUMN_NUMBER.fullmatch(given):
            raise UsageError(f"--tokens-column {given}: columns of CoNLL files are numbers, from 1")
        return given or known or TOKENS
    blocks = read_table_blocks(
        table.source, dialect=dialect, opener=open_input, block_rows=_SAMPLE_ROWS
    )
    try:
        first = next(blocks)
        columns, rows = first.columns, first.rows
    except NoRowsError as error:
        columns, rows = error.columns, []
    found = [name for name in (known, TOKENS) if name in columns]
    if rows:  # Prodigy's tokens are objects, beside a text
        found = [name for name in found if any(words_of(row.get(name)) is not None for row in rows)]
    column = given or next(iter(found), None)
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

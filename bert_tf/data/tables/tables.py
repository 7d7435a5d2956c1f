"""Tables of CSV, TSV, JSON lines, Parquet or SQuAD JSON (`id`, `question`, `context`), read in
blocks or whole. Cells are never changed: a text that looks like a number stays a text.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack, cast, get_args

from bert_tf.base.console import Console
from bert_tf.base.errors import (
    BertPipelineError,
    Fault,
    NoRowsError,
    UsageError,
)
from bert_tf.config.sections.tables import NO_IDS
from bert_tf.data.tables.cells import (
    CellKind,
    annotation_fault,
    cell_fault,
    cell_text,
    check_columns,
    texts_of,
)
from bert_tf.data.tables.dialect import (
    COMPRESSIONS,
    PLAIN,
    TABLE_FORMATS,
    TableBudget,
    TableDialect,
    spreadsheet_advice,
    table_format_by_name,
)
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.formats.delimited import ParsedRow, read_delimited_rows
from bert_tf.data.tables.formats.delimited_header import TableHeader
from bert_tf.data.tables.formats.json_lines import read_json_rows
from bert_tf.data.tables.formats.parquet import parquet_schema, read_parquet_rows
from bert_tf.data.tables.formats.squad_json import SQUAD_COLUMNS, is_squad_json, read_squad_rows
from bert_tf.data.tables.header_hints import format_advice
from bert_tf.data.tables.places import Place, Places, likely_id_column
from bert_tf.data.tables.rejects import Reject, RejectTally, keeping_rejects, nothing_usable
from bert_tf.data.tables.text_files import Opener, open_local

_ROWS_WITH_KEYS = 8192  # of JSON lines, whose keys are the names of the columns
_LINE_END = re.compile(r"\r\n?|\n")
_FIRST_ROWS = 1024  # of a table, for a look at its columns
_MOST_CHARACTERS = 1 << 26  # of a block, which then ends, but with a whole row


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableBlock:
    """Some rows of a table, in file order.

    `rows`, `raw_rows` and `lines` have the same length: an item per usable row.
    """

    header: TableHeader | None  # None of JSON lines and Parquet
    columns: tuple[str, ...]  # of JSON lines the keys in the file's first 8,192 rows
    rows: list[dict[str, Any]]  # usable ones: text in CSV and TSV, else JSON values
    raw_rows: list[str]  # the same rows as in the file, without their line ends; of Parquet as JSON
    lines: list[int]  # the line each row starts on, counted from 1
    rejects: list[Reject]  # rows of this range of the file that cannot be used
    # for each reject the row as in the file, and its values; "" and None if it could not be parsed
    rejected_rows: list[tuple[str, dict[str, Any] | None]] = dataclasses.field(default_factory=list)
    places: Places = dataclasses.field(default_factory=Places)  # row and id of each line

    @property
    def rows_in(self) -> int:
        """Return the number of rows that were read, rejected ones included."""
        return len(self.rows) + len(self.rejects)

    def in_order(self) -> Iterator[tuple[int, dict[str, Any] | Reject]]:
        """Yield line and content of all rows, rejects among them, in the file's order."""
        rows: list[tuple[int, Any]] = [*zip(self.lines, self.rows, strict=True)]
        rows += [(reject.line, reject) for reject in self.rejects]
        yield from sorted(rows, key=lambda row: row[0])

    def text_lists(self, columns: Sequence[str]) -> list[list[str] | None]:
        """Return the texts of each row, from several columns or one with lists; see `texts_of`."""
        return [texts_of(row, columns) for row in self.rows]

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column, empty where a row lacks it."""
        return [cell_text(row.get(column)) for row in self.rows]

    def rejecting(self, source: str, faults: Iterable[Fault | None]) -> Self:
        """Move rows with a fault to the rejects.

        Args:
            source: the file.
            faults: for each usable row reason and detail, or None if it can be used.
        """
        kept: list[int] = []
        rejects: list[Reject] = []
        rejected_rows: list[tuple[str, dict[str, Any] | None]] = []
        for index, (line, fault) in enumerate(zip(self.lines, faults, strict=True)):
            if fault is None:
                kept.append(index)
                continue
            rejects.append(Reject.at(source, self.places.at(line), *fault))
            rejected_rows.append((self.raw_rows[index], self.rows[index]))
        if not rejects:
            return self
        return dataclasses.replace(
            self,
            rows=[self.rows[index] for index in kept],
            raw_rows=[self.raw_rows[index] for index in kept],
            lines=[self.lines[index] for index in kept],
            rejects=[*self.rejects, *rejects],
            rejected_rows=[*self.rejected_rows, *rejected_rows],
        )


def table_format(path: str | Path) -> str:
    """Return `csv`, `tsv`, `jsonl` or `parquet` by the file name; else raise UsageError."""
    format_name = table_format_by_name(str(path))
    if Path(path).is_dir():
        raise UsageError(f"{path}: is a folder; give a file in it")
    if format_name is not None:
        return format_name
    advice = spreadsheet_advice(str(path))
    if advice is not None:
        raise UsageError(advice)
    seems = format_advice(path)
    if seems:
        raise UsageError(f"{path}: format unknown by its name; {seems}")
    raise UsageError(
        f"{path}: format unknown; the name must end in {', '.join(TABLE_FORMATS)}, "
        f"all but .parquet optionally followed by {', '.join(COMPRESSIONS)}"
    )


def fixed_columns(path: str | Path, opener: Opener = open_local) -> tuple[str, ...]:
    """Return the columns that the format itself names, as SQuAD JSON does; () for others."""
    return SQUAD_COLUMNS if is_squad_json(path, opener) else ()


class NeededColumns(TypedDict, total=False):
    """Columns that every row must have."""

    text_columns: Sequence[str]  # hold text
    value_columns: Sequence[str]  # hold a text, a number or a truth value
    list_columns: Sequence[str]  # may hold a list, whose text is its JSON, a value, or nothing
    allow_empty: bool  # keep rows in which a needed column is there but empty (or null)


def _kinds(needed: NeededColumns) -> dict[str, CellKind]:
    """Return the kind of each needed column, by name."""
    unknown = needed.keys() - NeededColumns.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown arguments: {', '.join(sorted(unknown))}")
    columns_by_key = cast(Mapping[str, Any], needed)
    kinds: dict[str, CellKind] = {}
    for kind in get_args(CellKind):
        kinds.update(dict.fromkeys(columns_by_key.get(f"{kind}_columns", ()), kind))
    return kinds


def read_table_blocks(
    path: str | Path,
    *,
    dialect: TableDialect = PLAIN,
    block_rows: int = 8192,
    max_rows: int = 0,
    needed_only: bool = False,
    not_ids: Collection[str] = (),
    console: Console | None = None,
    opener: Opener = open_local,
    **needed: Unpack[NeededColumns],
) -> Iterator[TableBlock]:
    """Read a table in blocks of rows, so that memory does not grow with the file.

    Args:
        path: the file; its name tells the format and the compression.
        dialect: how it is written, and limits.
        block_rows: rows read at once, rejected ones included; fewer where rows are long.
        max_rows: read only the first rows, rejected ones included (0: all).
        needed_only: leave out other columns where the format stores columns apart, or where no
            header says how many there are.
        not_ids: columns besides the needed ones that have a meaning, so that they are not taken for
            an id column.
        console: gets notes on separators and quotes that are not the usual ones; None for none.
        opener: opens the file, which may be on other storage.
        needed: see `NeededColumns`; rows without these columns are rejected.

    Raises:
        NoRowsError: the file is empty, or has names of columns only.
        InputError: its header is unusable, or no row can be used.
        UsageError: the file is missing, of an unknown format, or lacks a needed column; or
            `--no-header` was given for a format whose columns have names.
    """
    kinds = _kinds(needed)
    id_column = _id_column(path, dialect, kinds, not_ids, opener)
    read_columns = _with_id(kinds, id_column)
    header: TableHeader | None = None
    rows: Iterator[ParsedRow]
    match format_name := table_format(path):
        case "csv" | "tsv":
            parsed: Iterator[Any] = read_delimited_rows(
                path,
                dialect,
                has_quotes=format_name == "csv",
                only=read_columns if needed_only else (),
                console=console,
                opener=opener,
            )
            header = next(parsed)
            columns = header.columns
            rows = parsed
        case "parquet":
            columns = tuple(parquet_schema(str(path), dialect, opener).names)
            read = read_columns if needed_only else columns
            rows = read_parquet_rows(path, dialect, opener, columns=read, needed=kinds)
        case _:
            read_rows = read_squad_rows if is_squad_json(path, opener) else read_json_rows
            rows = read_rows(path, dialect, opener)
            first = _taken(rows, _ROWS_WITH_KEYS)
            columns = _object_keys(first)
            rows = itertools.chain(first, rows)
    if columns or format_name != "jsonl":  # JSON lines may begin with rejects only
        check_columns(path, header, columns, read_columns)
    rows = itertools.islice(rows, max_rows or None)
    yield from blocks_of_rows(
        path, rows, columns, block_rows, header=header, id_column=id_column, **needed
    )


def _with_id(needed: Iterable[str], id_column: str | None) -> tuple[str, ...]:
    return (*needed, id_column) if id_column else tuple(needed)


def _id_column(
    path: str | Path,
    dialect: TableDialect,
    needed: Collection[str],
    not_ids: Collection[str],
    opener: Opener,
) -> str | None:
    """Return the column with the ids of rows, as named or as its values show; None for none.

    Raises:
        UsageError: the named column is one that the rows are read from.
    """
    name = dialect.id_column
    if name == NO_IDS:
        return None
    if fixed_columns(path, opener):
        dialect.check_no_id_column(path, "questions of SQuAD JSON are named by their own ids")
        return None
    if name in needed:
        raise UsageError(
            f"{path}: --id-column {name}: the model reads that column; name one that only tells "
            f"the rows apart, or {NO_IDS}"
        )
    # Pipes can be read once only.
    if name is not None or not ("://" in str(path) or Path(path).is_file()):
        return name
    block = first_rows(path, dialect, opener)
    if block is None:
        return None
    return likely_id_column(block.columns, block.rows, {*needed, *not_ids})


class RowCounter:
    """Counts the rows of a delimited file as spreadsheets do, blank lines included."""

    def __init__(self) -> None:
        self._inside = 0  # line ends in the cells of the rows so far

    def number(self, line: int, raw: str) -> int:
        """Return the number of a row, in file order; 0 if it is the number of its line.

        Args:
            line: the line it starts on.
            raw: the row as in the file; "" for a row without line ends in its cells.
        """
        inside = self._inside
        if "\n" in raw or "\r" in raw:
            self._inside += len(_LINE_END.findall(raw))
        return line - inside if inside else 0


def first_rows(
    path: str | Path, dialect: TableDialect = PLAIN, opener: Opener = open_local
) -> TableBlock | None:
    """Read the first rows of a table with all of their columns; None if there are none.

    Detectors use them to look at columns that nothing else reads. A table that cannot be read gives
    None, because the reader of its rows reports the error.
    """
    without_ids = dataclasses.replace(dialect, id_column=NO_IDS)
    try:
        blocks = read_table_blocks(path, dialect=without_ids, max_rows=_FIRST_ROWS, opener=opener)
        return next((block for block in blocks if block.rows), None)
    except BertPipelineError:
        return None


def has_column(path: str, name: str, dialect: TableDialect, opener: Opener = open_local) -> bool:
    """Whether a table has a column, or its first rows have a key; errors as of reading it."""
    if name in fixed_columns(path, opener):
        return True
    try:
        without_ids = dataclasses.replace(dialect, id_column=NO_IDS)
        blocks = read_table_blocks(path, dialect=without_ids, max_rows=_FIRST_ROWS, opener=opener)
        return any(name in block.columns for block in blocks)
    except NoRowsError as error:
        return name in error.columns


def blocks_of_rows(
    path: str | Path,
    rows: Iterator[ParsedRow],
    columns: tuple[str, ...],
    block_rows: int,
    *,
    header: TableHeader | None = None,
    noun: str = "row",
    id_column: str | None = None,
    **needed: Unpack[NeededColumns],
) -> Iterator[TableBlock]:
    """Group the rows of a file into blocks; errors as of `read_table_blocks`.

    Args:
        path: the file.
        rows: its rows and rejects, in file order.
        columns: their names; empty if only the rows can tell, as in JSON lines.
        block_rows: rows of a block.
        header: of the file, for its blocks and for advice on a missing column.
        noun: the word for a row in messages.
        id_column: column with the ids of rows; None for none.
        needed: see `NeededColumns`.
    """
    kinds = _kinds(needed)
    allow_empty = needed.get("allow_empty", False)
    counter = RowCounter() if header is not None else None
    is_usable = False
    tally = RejectTally()
    while parsed_rows := _taken(rows, block_rows):
        if not columns:
            columns = _object_keys(parsed_rows)
            if columns:
                check_columns(path, None, columns, _with_id(kinds, id_column))
        block = TableBlock(
            header=header, columns=columns, rows=[], raw_rows=[], lines=[], rejects=[]
        )
        for line, raw, row in parsed_rows:
            number = 0 if counter is None else counter.number(line, raw)
            name = ""
            if id_column is not None and not isinstance(row, Reject):
                name = cell_text(row.get(id_column)).strip()
            if number or name:
                block.places.note(Place(line, number, name))
            if isinstance(row, Reject):
                block.rejects.append(dataclasses.replace(row, row=number) if number else row)
                block.rejected_rows.append(("", None))
                continue
            fault = _first_fault(row, kinds, allow_empty=allow_empty)
            if fault is not None:
                block.rejects.append(Reject.at(path, Place(line, number, name), *fault))
                block.rejected_rows.append((raw, row))
                continue
            block.rows.append(row)
            block.raw_rows.append(raw)
            block.lines.append(line)
        is_usable = is_usable or bool(block.rows)
        tally.add(block.rejects)
        yield block
    if is_usable:
        return
    if tally.total or noun != "row":
        raise nothing_usable(path, tally, noun=noun)
    error = NoRowsError(f"{path}: has columns but no rows; add some")
    error.header = header
    error.columns = columns
    raise error


def _first_fault(
    row: dict[str, Any], kinds: Mapping[str, CellKind], *, allow_empty: bool
) -> Fault | None:
    """Return reason and detail of the first needed column that cannot be used; None if all can."""
    for column, kind in kinds.items():
        fault = cell_fault(row, column, kind=kind, allow_empty=allow_empty)
        if fault is not None:
            return fault
    return None


def read_table(
    path: str | Path,
    *,
    dialect: TableDialect = PLAIN,
    max_rows: int = 0,
    console: Console | None = None,
    **needed: Unpack[NeededColumns],
) -> Table:
    """Read the needed columns of a whole file.

    Rows that an annotator of Prodigy did not accept are rejected. Arguments and errors are those of
    `read_table_blocks`; InputError also beyond `dialect.max_table_megabytes`.
    """
    budget = TableBudget(path, dialect.max_table_megabytes)
    columns: dict[str, list[str]] = {name: [] for name in _kinds(needed)}
    lines: list[int] = []
    rejects: list[Reject] = []
    places = Places()
    with keeping_rejects(rejects):
        for block in read_table_blocks(
            path, dialect=dialect, max_rows=max_rows, needed_only=True, console=console, **needed
        ):
            faults = (annotation_fault(row, columns) for row in block.rows)
            block = block.rejecting(str(path), faults)
            for name, cells in columns.items():
                texts = block.texts(name)
                budget.add(0, texts)
                cells.extend(texts)
            budget.add(block.rows_in, ())
            lines.extend(block.lines)
            rejects.extend(block.rejects)
            places.update(block.places)
            ids = block.places.id_of_line
            budget.add(len(ids), ids.values())
        if not lines:
            raise nothing_usable(path, rejects)
    return Table(source=str(path), columns=columns, lines=lines, rejects=rejects, places=places)


def _taken(rows: Iterator[ParsedRow], most: int) -> list[ParsedRow]:
    """Take the next rows: at most `most`, fewer where they are long."""
    taken = []
    characters = 0
    for row in rows:
        taken.append(row)
        _, raw, _ = row
        characters += len(raw)
        if len(taken) == most or characters >= _MOST_CHARACTERS:
            break
    return taken


def _object_keys(parsed_rows: list[ParsedRow]) -> tuple[str, ...]:
    """Return the keys of rows in the order in which they first appear."""
    names: dict[str, None] = {}
    for _, _, row in parsed_rows:
        if isinstance(row, dict):
            names.update(dict.fromkeys(row))
    return tuple(names)

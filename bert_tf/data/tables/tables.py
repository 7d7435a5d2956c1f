"""Tables of CSV, TSV, JSON lines, Parquet or SQuAD JSON (`id`, `question`, `context`), read in
blocks or whole. Cells are never changed: a text that looks like a number stays a text.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict, Unpack, cast, get_args

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import (
    BertPipelineError,
    Fault,
    InputError,
    NoRowsError,
    RowsRejected,
    UsageError,
)
from bert_tf.base.wording import quantity
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
from bert_tf.data.tables.formats.delimited import ParsedRow, TableHeader, read_delimited_rows
from bert_tf.data.tables.formats.json_lines import read_json_rows
from bert_tf.data.tables.formats.parquet import parquet_schema, read_parquet_rows
from bert_tf.data.tables.formats.squad_json import SQUAD_COLUMNS, is_squad_json, read_squad_rows
from bert_tf.data.tables.header_hints import format_advice
from bert_tf.data.tables.places import Place, Places, likely_id_column
from bert_tf.data.tables.rejects import Reject, RejectTally, keeping_rejects, nothing_usable
from bert_tf.data.tables.text_files import Opener, open_local

_ROWS_WITH_KEYS = 8192  # of JSON lines that are looked at for the names of columns
_LINE_END = re.compile(r"\r\n?|\n")
_FIRST_ROWS = 1024  # that show what is in the columns
_MOST_CHARACTERS = 1 << 26  # read at once, and a row; fewer rows than asked for where they are long


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
    # of each reject the row as in the file and its values; "" and None if it is no row
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
        """Return the texts of each row, from several columns or one with lists, see `texts_of`."""
        return [texts_of(row, columns) for row in self.rows]

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column, empty where a row lacks it."""
        return [cell_text(row.get(column)) for row in self.rows]

    def rejecting(self, source: str, faults: Iterable[Fault | None]) -> Self:
        """Move rows with a fault to the rejects.

        Args:
            source: the file.
            faults: of each usable row, reason and detail; None if it can be used.
        """
        faulty_rows = list(zip(self.lines, faults, strict=True))
        rejects = [
            Reject.at(source, self.places.at(line), *fault)
            for line, fault in faulty_rows
            if fault is not None
        ]
        if not rejects:
            return self
        kept = [index for index, (_, fault) in enumerate(faulty_rows) if fault is None]
        rejected = [
            (self.raw_rows[index], self.rows[index])
            for index, (_, fault) in enumerate(faulty_rows)
            if fault is not None
        ]
        return dataclasses.replace(
            self,
            rows=[self.rows[index] for index in kept],
            raw_rows=[self.raw_rows[index] for index in kept],
            lines=[self.lines[index] for index in kept],
            rejects=[*self.rejects, *rejects],
            rejected_rows=[*self.rejected_rows, *rejected],
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileRows:
    """The usable rows of a whole file.

    Attributes:
        noun: what a row is called in messages.
        row_fields: names of the fields with an item per row: lists, arrays, or dicts of them.
    """

    noun: ClassVar[str] = "row"
    # Lists and arrays with an item per row, or dicts of them.
    row_fields: ClassVar[tuple[str, ...]] = ()

    source: str  # the file
    lines: list[int]  # the line each usable row starts on, counted from 1
    rejects: list[Reject]  # rows that cannot be used
    places: Places = dataclasses.field(default_factory=Places)  # row and id of each line

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int) -> Place:
        """Return where a row is, given its number among the usable ones."""
        return self.places.at(self.lines[row])

    @property
    def all_places(self) -> list[Place]:
        """Return where each usable row is."""
        return [self.places.at(line) for line in self.lines]

    @property
    def place_columns(self) -> dict[str, list[Any]]:
        """Return the fields that name rows in lists of them, see `Places.columns`."""
        return self.places.columns(self.lines)

    def split(self, held_out: np.ndarray) -> tuple[Self, Self]:
        """Split off rows; all rejects stay with the first part.

        Args:
            held_out: bool [rows], True for rows of the second part.
        """
        kept, out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        return self.selected(kept, self.rejects), self.selected(out, [])

    def selected(self, rows: np.ndarray, rejects: list[Reject]) -> Self:
        """Select rows, int [n], and give them these rejects."""
        fields = ("lines", *self.row_fields)
        items = {name: _items(getattr(self, name), rows) for name in fields}
        return dataclasses.replace(self, **items, rejects=rejects)

    def rejecting(self, faults: Mapping[int, Fault], *, advice: str = "") -> Self:
        """Move usable rows to the rejects.

        Args:
            faults: reason and detail by index of the row.
            advice: what to do, for the message if no row is left.

        Raises:
            RowsRejected: no row is left.
        """
        if not faults:
            return self
        new = [Reject.at(self.source, self.place(row), *fault) for row, fault in faults.items()]
        rejects = [*self.rejects, *new]
        if len(faults) == len(self):
            rejects.sort(key=lambda reject: reject.line)
            raise nothing_usable(self.source, rejects, noun=self.noun, advice=advice)
        return self.selected(np.delete(np.arange(len(self)), list(faults)), rejects)

    @contextmanager
    def reasons_first(self) -> Iterator[None]:
        """Begin errors about the usable rows with why the other rows were rejected.

        An `InputError` becomes RowsRejected if there are rejects; a UsageError stays one.
        """
        try:
            yield
        except (InputError, UsageError) as error:
            if not self.rejects or isinstance(error, RowsRejected):
                raise
            total = quantity(len(self) + len(self.rejects), "row")
            tally = RejectTally(self.rejects)
            texts = (tally.brief(), tally.summaries()[0].remedy, "of the rest")
            line = (
                f"{self.source}: {len(self.rejects):,} of {total} rejected: "
                f"{'; '.join(filter(None, texts))}: {str(error).removeprefix(f'{self.source}: ')}"
            )
            if isinstance(error, UsageError):
                raise UsageError(line) from error
            raise RowsRejected(line, self.rejects) from error


def _items(values: Any, rows: np.ndarray) -> Any:
    """Select items of a field of rows: a list, an array, a dict of these, or None."""
    if isinstance(values, dict):
        return {name: _items(each, rows) for name, each in values.items()}
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    return None if values is None else values[rows]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table(FileRows):
    """The needed columns of a whole file, as texts."""

    row_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: dict[str, list[str]]  # texts of the usable rows by column name


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
    """Return the columns that the format itself names, as SQuAD JSON does; otherwise none."""
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
    columns = cast(Mapping[str, Any], needed)
    return {
        name: kind for kind in get_args(CellKind) for name in columns.get(f"{kind}_columns", ())
    }


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
        not_ids: columns that mean something, besides needed ones, so that their values name no
            rows.
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
            columns, rows = header.columns, parsed
        case "parquet":
            columns = tuple(parquet_schema(str(path), dialect, opener).names)
            read = read_columns if needed_only else columns
            rows = read_parquet_rows(path, dialect, opener, columns=read, needed=kinds)
        case _:
            is_squad = is_squad_json(path, opener)
            rows = (read_squad_rows if is_squad else read_json_rows)(path, dialect, opener)
            first = _taken(rows, _ROWS_WITH_KEYS)
            columns, rows = _object_keys(first), itertools.chain(first, rows)
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
    """Return the column with the ids of rows: the named one, or by its values; None for none.

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

    A glance at columns that nothing reads, for detectors: any fault is that of another reader.
    """
    without_ids = dataclasses.replace(dialect, id_column=NO_IDS)
    try:
        blocks = read_table_blocks(path, dialect=without_ids, max_rows=_FIRST_ROWS, opener=opener)
        return next((block for block in blocks if block.rows), None)
    except BertPipelineError:
        return None


def has_column(path: str, name: str, dialect: TableDialect, opener: Opener = open_local) -> bool:
    """Return whether a table has a column, or its first rows a key; errors as of reading it."""
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
    """Make blocks of a file's rows; errors as of `read_table_blocks`.

    Args:
        path: the file.
        rows: its rows and rejects, in file order.
        columns: their names; empty if only the rows can tell, as in JSON lines.
        block_rows: rows of a block.
        header: of the file, for its blocks and for advice on a missing column.
        noun: what a row is called in messages.
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
            for column, kind in kinds.items():
                if fault := cell_fault(row, column, kind=kind, allow_empty=allow_empty):
                    block.rejects.append(Reject.at(path, Place(line, number, name), *fault))
                    block.rejected_rows.append((raw, row))
                    break
            else:
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
    error.header, error.columns = header, columns
    raise error


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
        characters += len(row[1])
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

"""Formats rows with their predictions as lines; copies rows that keep their format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.data.tables.cells import cell_text
from bert_tf.data.tables.formats.delimited_header import TableHeader
from bert_tf.data.tables.word_blocks import tag_separator, with_tags
from pipeline.scoring.tables import CONLL, ScoredTable

NOT_A_TSV_CELL = "a TSV cell cannot hold a tab or a line end"
NOT_A_CONLL_TAG = "a tag cannot hold the separator of the columns of its file"
TSV_BREAKS = re.compile(r"[\t\n\r]")
# First characters of cells that spreadsheets take for formulas, or strip to find one:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA_STARTS = frozenset("=+-@\t\r\n")
# Looks ahead for the digit: the time of `[\d.,]*\d[\d.,]*` grows with the square of a long cell.
_NUMBER = re.compile(r"[+-]?(?=[.,]*\d)[\d.,]+(e[+-]?\d+)?%?", re.ASCII | re.IGNORECASE)


class UnwritableRowError(Exception):
    """A row cannot be written in the output's format; the message is the reason."""


def part_line(
    table: ScoredTable,
    raw: str,
    cells: Mapping[str, Any] | None,
    predictions: Mapping[str, Any],
    *,
    delimiter: str,
    escapes: bool = False,
) -> str:
    """Return a row and its predictions as a line of their part.

    It has the output's format, but rows of JSON stay JSON, and for rows of Parquet it holds only
    the predictions.

    Args:
        table: formats of source and output.
        raw: the row as the table has it.
        cells: values by column; needed where CSV or TSV becomes another format.
        predictions: values by added column.
        delimiter: of the source.
        escapes: see `escaped`.

    Raises:
        UnwritableRowError: a cell cannot stand in TSV, or a tag in CoNLL columns.
    """
    output_format = table.output_format
    is_same = table.source_format == table.output_format
    if table.source_format == CONLL:
        (tags,) = predictions.values()
        return _sentence_lines(raw, tags)
    if table.source_format == "parquet":
        return json.dumps(dict(predictions), ensure_ascii=False)
    if table.source_format == "jsonl":  # the text of the row stays
        added = json.dumps(dict(predictions), ensure_ascii=False)
        start = raw[:-1].rstrip()
        separator = "" if start == "{" else ", "
        line = f"{start}{separator}{added[1:]}"
        if output_format == "tsv":
            # Only to reject the row now: its cells are made when the keys of all rows are known.
            delimited_line(cells_of_object(line, list(json.loads(line))), output_format)
        return line
    if is_same and not escapes:
        return delimited_line(predictions.values(), output_format, delimiter=delimiter, raw=raw)
    assert cells is not None
    if output_format in ("jsonl", "parquet"):
        return json.dumps({**cells, **predictions}, ensure_ascii=False)
    values = (*cells.values(), *predictions.values())
    own_delimiter = delimiter if is_same else ""
    return delimited_line(values, output_format, delimiter=own_delimiter, escapes=escapes)


def with_last_cell(table: ScoredTable, line: str, value: Any) -> str:
    """Return a line of `part_line` whose last prediction, None until now, has a value for JSON."""
    text = json.dumps(value, ensure_ascii=False)
    if {table.source_format, table.output_format} & {"jsonl", "parquet"}:
        return f"{line.removesuffix('null}')}{text}}}"
    return line + (text if table.output_format == "tsv" else _quoted(text, '"'))


def escaped(text: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula.

    `escaped("=1+2")` is `"'=1+2"`, `escaped("-3.5")` is `"-3.5"`.
    """
    is_formula = text[:1] in _FORMULA_STARTS and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def delimited_line(
    cells: Iterable[Any],
    output_format: str,
    *,
    delimiter: str = "",
    escapes: bool = False,
    raw: str | None = None,
) -> str:
    """Format cells as CSV (RFC 4180, quoted where needed) or TSV.

    Args:
        cells: values.
        output_format: `csv` or `tsv`.
        delimiter: empty for the usual one.
        escapes: see `escaped`.
        raw: text before the cells, which stays as it is; None for nothing.

    Raises:
        UnwritableRowError: a cell cannot stand in TSV.
    """
    texts = [cell_text(cell) for cell in cells]
    if escapes:
        texts = [escaped(text) for text in texts]
    if output_format == "tsv":
        delimiter = delimiter or "\t"
        if any(TSV_BREAKS.search(text) for text in texts):
            raise UnwritableRowError(NOT_A_TSV_CELL)
    else:
        delimiter = delimiter or ","
        texts = [_quoted(text, delimiter) for text in texts]
    if raw is not None:
        texts = [raw, *texts]
    return delimiter.join(texts)


def header_line(
    table: ScoredTable,
    header: TableHeader | None,
    keys: Sequence[str],
    predictions: Sequence[str],
    *,
    escapes: bool = False,
) -> str | None:
    """Return the first line of an output; None for JSON lines, or without a header.

    Args:
        table: formats of source and output.
        header: of a delimited source; else None.
        keys: names of the source's columns.
        predictions: names of the added columns.
        escapes: see `escaped`.
    """
    output_format = table.output_format
    if output_format in ("jsonl", CONLL) or (header is not None and header.raw is None):
        return None
    if header is None and not keys:  # of a file without a byte
        return None
    if header is None or table.source_format != output_format:
        return delimited_line([*keys, *predictions], output_format, escapes=escapes)
    delimiter = header.delimiter
    if escapes:
        names = [*keys, *predictions]
        return delimited_line(names, output_format, delimiter=delimiter, escapes=True)
    return delimited_line(predictions, output_format, delimiter=delimiter, raw=header.raw)


def cells_of_object(line: str, keys: Sequence[str]) -> list[str]:
    """Return values of a JSON object as cells: texts and numbers as written, others as JSON."""
    written = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    if not any(isinstance(value, list | dict) for value in written.values()):
        return [cell_text(written.get(key)) for key in keys]
    # JSON inside a cell has its numbers as they are parsed, not as texts.
    plain = json.loads(line)
    cells = []
    for key in keys:
        if isinstance(written.get(key), list | dict):
            cells.append(json.dumps(plain[key], ensure_ascii=False))
        else:
            cells.append(cell_text(written.get(key)))
    return cells


def _sentence_lines(raw: str, tags: Sequence[str]) -> str:
    """Return the lines of a sentence with a tag at the end of each."""
    separator = tag_separator(raw)
    column_separator = None if separator == " " else separator
    for tag in tags:
        if len(tag.split(column_separator)) != 1:
            raise UnwritableRowError(NOT_A_CONLL_TAG)
    return with_tags(raw, tags)


def _quoted(text: str, delimiter: str) -> str:
    if delimiter in text or '"' in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text

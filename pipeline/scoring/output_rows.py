"""Rows with their predictions as lines; rows that keep their format are copied byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.data.tables.cells import cell_text
from bert_tf.data.tables.formats.delimited import TableHeader
from bert_tf.data.tables.word_blocks import tag_separator, with_tags

NOT_A_TSV_CELL = "a TSV cell cannot hold a tab or a line end"
NOT_A_CONLL_TAG = "a tag cannot hold what separates the columns of its file"
TSV_BREAKS = re.compile(r"[\t\n\r]")
# First characters of cells that spreadsheets take for formulas, or strip to find one:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA_STARTS = frozenset("=+-@\t\r\n")
# Looks ahead for the digit: `[\d.,]*\d[\d.,]*` takes time with the square of a long cell.
_NUMBER = re.compile(r"[+-]?(?=[.,]*\d)[\d.,]+(e[+-]?\d+)?%?", re.ASCII | re.IGNORECASE)


class UnwritableRowError(Exception):
    """A row cannot be written in the output's format; the message is the reason."""


def part_line(
    raw: str,
    cells: Mapping[str, Any] | None,
    predictions: Mapping[str, Any],
    *,
    delimiter: str,
    source_format: str,
    output_format: str,
    escapes: bool = False,
) -> str:
    """Returns a row and its predictions as a line of their part.

    This is the output's format, unless `is_rewritten`; for Parquet JSON lines, from Parquet only
    the predictions. `cells` are needed where CSV or TSV becomes another format; for `escapes` see
    `escaped`.

    Raises UnwritableRowError for a cell that cannot stand in TSV, or a tag in CoNLL columns.
    """
    if source_format == "conll":
        (tags,) = predictions.values()
        return _sentence_lines(raw, tags)
    if source_format == "parquet":
        return json.dumps(dict(predictions), ensure_ascii=False)
    if source_format == "jsonl":
        line = json_line(raw, predictions)
        if output_format == "tsv":  # rejects it now; cells are made when all keys are known
            delimited_line(cells_of_object(line, list(json.loads(line))), output_format="tsv")
        return line
    is_tsv = output_format == "tsv"
    if source_format == output_format and not escapes:
        return extended_line(raw, predictions.values(), delimiter=delimiter, is_tsv=is_tsv)
    assert cells is not None
    if output_format in ("jsonl", "parquet"):
        return json.dumps({**cells, **predictions}, ensure_ascii=False)
    return delimited_line(
        [*cells.values(), *predictions.values()],
        output_format=output_format,
        delimiter=delimiter if source_format == output_format else None,
        escapes=escapes,
    )


def is_rewritten(source_format: str, output_format: str) -> bool:
    """Whether lines of a part wait until the keys of all objects are known."""
    return source_format == "jsonl" != output_format


def rewritten_line(
    line: str, keys: Sequence[str], output_format: str, *, escapes: bool = False
) -> str:
    """Turns a part's JSON object into a line of CSV or TSV with a cell for each key."""
    return delimited_line(cells_of_object(line, keys), output_format=output_format, escapes=escapes)


def escaped(text: str) -> str:
    """Puts an apostrophe before a cell that a spreadsheet would run as a formula.

    `escaped("=1+2")` is `"'=1+2"`, `escaped("-3.5")` is `"-3.5"`.
    """
    is_formula = text[:1] in _FORMULA_STARTS and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def json_line(raw: str, predictions: Mapping[str, Any]) -> str:
    """Appends keys to a non-empty JSON object without blanks around it; keeps its own text.

    `json_line('{"a": 1.0}', {"b": None})` is `'{"a": 1.0, "b": null}'`.
    """
    added = json.dumps(dict(predictions), ensure_ascii=False)
    return f"{raw[:-1].rstrip()}, {added[1:]}"


def extended_line(raw: str, predictions: Iterable[Any], *, delimiter: str, is_tsv: bool) -> str:
    """Appends cells; raises UnwritableRowError for one that cannot stand in TSV."""
    return delimiter.join([raw, *_delimited(predictions, delimiter=delimiter, is_tsv=is_tsv)])


def delimited_line(
    cells: Iterable[Any],
    *,
    output_format: str,
    delimiter: str | None = None,
    escapes: bool = False,
) -> str:
    """Formats a new row of CSV (RFC 4180, quoted where needed) or TSV.

    Raises UnwritableRowError for a cell that cannot stand in TSV.
    """
    is_tsv = output_format == "tsv"
    delimiter = delimiter or ("\t" if is_tsv else ",")
    texts = map(cell_text, cells)
    if escapes:
        texts = map(escaped, texts)
    return delimiter.join(_delimited(texts, delimiter=delimiter, is_tsv=is_tsv))


def header_line(
    header: TableHeader | None,
    keys: Sequence[str],
    predictions: Sequence[str],
    *,
    source_format: str,
    output_format: str,
    escapes: bool = False,
) -> str | None:
    """Returns the first line of an output; None for JSON lines, or without a header."""
    if output_format in ("jsonl", "conll") or (header is not None and header.raw is None):
        return None
    if header is None and not keys:  # of a file without a byte
        return None
    is_same = header is not None and source_format == output_format
    delimiter = header.delimiter if header is not None and is_same else None
    if header is not None and header.raw is not None and is_same and not escapes:
        return extended_line(
            header.raw, predictions, delimiter=header.delimiter, is_tsv=output_format == "tsv"
        )
    return delimited_line(
        [*keys, *predictions], output_format=output_format, delimiter=delimiter, escapes=escapes
    )


def cells_of_object(line: str, keys: Sequence[str]) -> list[str]:
    """Values as cells: texts bare, numbers as written, the rest as JSON."""
    written = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    if not any(isinstance(value, list | dict) for value in written.values()):
        return [cell_text(written.get(key)) for key in keys]
    plain = json.loads(line)
    return [
        json.dumps(plain[key], ensure_ascii=False)
        if isinstance(written.get(key), list | dict)
        else cell_text(written.get(key))
        for key in keys
    ]


def _sentence_lines(raw: str, tags: Sequence[str]) -> str:
    separator = tag_separator(raw)
    for tag in tags:
        if len(tag.split(None if separator == " " else separator)) != 1:
            raise UnwritableRowError(NOT_A_CONLL_TAG)
    return with_tags(raw, tags)


def _delimited(cells: Iterable[Any], *, delimiter: str, is_tsv: bool) -> list[str]:
    texts = [cell_text(cell) for cell in cells]
    if is_tsv:
        if any(TSV_BREAKS.search(text) for text in texts):
            raise UnwritableRowError(NOT_A_TSV_CELL)
        return texts
    return [_quoted(text, delimiter) for text in texts]


def _quoted(text: str, delimiter: str) -> str:
    if delimiter in text or '"' in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text

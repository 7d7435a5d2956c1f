"""Explain why a table cannot be read as its name says, or lacks a column.

Only error messages need this module. It reads the first bytes of the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from bert_tf.base.errors import InputError
from bert_tf.data.tables.compression import compression_by_content
from bert_tf.data.tables.dialect import compression_of, table_format_by_name

_FIRST_BYTES = 16_384
_FIRST_LINES = 20  # searched for a header below titles
_SEPARATORS = (",", ";", "\t", "|")
# Patterns for the beginning of texts that are no tables, and advice
_OTHER_KINDS = (
    (r"<!doctype html|<html", "is an HTML page, of a sign-in or an error, say; download the file"),
    (r"<\?xml", "is XML; convert it to CSV or JSON lines"),
    (r"#FORMAT=WebAnno", "is WebAnno TSV; export CoNLL 2003 or CoNLL-U from WebAnno or INCEpTION"),
    (r"\+-[-+]+\+\s", "is a table drawn for a terminal; export CSV"),
)
# First bytes of files.
_ZIP = b"PK\x03\x04"
_PARQUET = b"PAR1"
# Programs and endings of files by their compression.
_COMPRESSED = {
    "gzip": ("gzip", ".jsonl.gz"),
    "bz2": ("bzip2", ".jsonl.bz2"),
    "zstd": ("zstd", ".jsonl.zst"),
}
_LEAST_LINES = 3  # of a table without a known ending
_COLUMN_NAME = re.compile(r"[\w#]{1,30}(?:[ .-]\w{1,30}){0,2}")


def _first_text(path: str | Path) -> str:
    """Return the first characters of a file, read as UTF-8; "" if it is compressed or missing."""
    if compression_of(str(path)) is not None:
        return ""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(_FIRST_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def format_advice(path: str | Path, *, may_be_prose: bool = False) -> str:
    """Name the likely format of a file without a known ending, and advise how to name the file.

    Args:
        path: a local file.
        may_be_prose: whether lines are likely texts, so that tables are not considered.

    Returns:
        A clause for an error message; "" if no format is likely, or the file is not local.
    """
    try:
        with Path(path).open("rb") as stream:
            first = stream.read(_FIRST_BYTES)
    except OSError:
        return ""
    if first.startswith(_ZIP):
        return "it is a ZIP archive: unzip it and give the files in it"
    if first.startswith(_PARQUET):
        return "it is Parquet: end its name in .parquet"
    compression = compression_by_content(first)
    if compression is not None:
        program, ending = _COMPRESSED[compression]
        return f"it is compressed by {program}: end its name in {ending} or the like"
    text = first.decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or "\0" in lines[0]:
        return ""
    if lines[0].lstrip().startswith("{") and '"' in lines[0]:
        return "it looks like JSON lines: end its name in .jsonl"
    if len(first) == _FIRST_BYTES:
        lines.pop()  # the last line may be cut
    if may_be_prose or len(lines) < _LEAST_LINES:
        return ""
    for separator, ending in (("\t", ".tsv"), (",", ".csv"), (";", ".csv"), ("|", ".csv")):
        names = _cells(lines[0], separator)
        counts = {len(_cells(line, separator)) for line in lines[:_FIRST_LINES]}
        if len(names) < 2 or counts != {len(names)} or f"{separator} " in lines[0]:
            continue  # in prose a blank follows
        if len({*names}) == len(names) and all(map(_COLUMN_NAME.fullmatch, names)):
            return f"it looks like a table: end its name in {ending}"
    return ""


def check_is_no_other(path: str | Path) -> None:
    """Raise InputError if a file is text of another kind than its name says, such as HTML."""
    text = _first_text(path).lstrip()
    for pattern, advice in _OTHER_KINDS:
        if re.match(pattern, text, re.IGNORECASE):
            raise InputError(f"{path}: {advice}")


def header_below(path: str | Path, line: int, names: Collection[str]) -> str | None:
    """Find a header with one of the names below the line that was read as the header.

    A row may have such a cell, too. A header below titles has more cells than the titles, all of
    them different and with letters, and the row after it has as many cells.

    Args:
        path: the table.
        line: number of the line that was read as the header, from 1.
        names: names of the column, in lower case or as the file must have them.

    Returns:
        Advice, or None if the first lines have no such cell.
    """
    lines = _first_text(path).splitlines()[:_FIRST_LINES]
    if not 0 < line <= len(lines):
        return None
    title = lines[line - 1]
    # If the title has no separator, the header below may have any.
    for separator in [mark for mark in _SEPARATORS if mark in title] or _SEPARATORS:
        width = len(list(filter(None, _cells(title, separator))))
        for number, text in enumerate(lines[line:], start=line + 1):
            cells = _cells(text, separator)
            filled = list(filter(None, cells))
            known_cells = [cell for cell in filled if cell in names or cell.lower() in names]
            if not known_cells or len(filled) <= max(width, 1):
                continue
            is_header = len({*filled}) == len(filled) and all(map(_has_letters, filled))
            below = next(filter(str.strip, lines[number:]), None)
            if is_header and (below is None or len(_cells(below, separator)) == len(cells)):
                return f"line {number} has {known_cells[0]!r}: remove the lines above it"
    return None


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _cells(text: str, separator: str) -> list[str]:
    """Return the cells of a line without blanks around them, quotes removed."""
    return [cell.strip().strip("'") for cell in next(csv.reader([text], delimiter=separator), [])]


def export_hint(columns: Iterable[str]) -> str:
    """Advise how to export columns that Label Studio nests in one; "" for other tables."""
    hint = "of Label Studio's formats export JSON-MIN, with an object per line, or CSV, and "
    return hint if {"data", "annotations"}.issubset(columns) else ""


def other_separator(path: str | Path, wanted: str, column: str) -> str:
    """Advise on a separator that joins the wanted name to others in the name of the only column.

    Args:
        path: the table.
        wanted: the name of the column that is needed.
        column: the name of the only column.

    Returns:
        A clause for an error message; "" if the wanted name is not part of the column's.
    """
    name = re.escape(wanted)
    match = re.search(rf"\b{name}\"?\s*(\W+?)\s*\"?\b|\b\"?\s*(\W+?)\s*\"?{name}\b", column, re.I)
    if match is None:
        return ""
    separator = match[1] or match[2]
    is_csv = table_format_by_name(str(path)) == "csv"
    known = "commas, semicolons, tabs and bars" if is_csv else "in .tsv only tabs"
    known += " separate columns"
    if len(separator) > 1:
        return f"{known}: write one of them in place of {separator!r}"
    if separator in ",;|":
        return f"{known}: end its name in .csv for {separator!r}"
    end = "" if is_csv else " and end its name in .csv"
    return f"{known}: for {separator!r} write a first line sep={separator}{end}"

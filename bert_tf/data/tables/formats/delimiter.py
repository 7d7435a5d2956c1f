"""Which character separates the cells of a delimited file, and whether its cells are quoted."""

from __future__ import annotations

import itertools
import re

import numpy as np

from bert_tf.data.tables.formats.csv_records import SOUND, Records, field_bytes, find_records

DELIMITERS = (",", ";", "\t", "|")
_SAMPLED_RECORDS = 20  # that the delimiter of a file without a header is found in
_QUOTE = ord('"')
_NAMED_DELIMITER = re.compile(rb'"?sep=([^"\r\n])"?\1*[\r\n]', re.IGNORECASE)  # as Excel writes it


def find_delimiter(sample: np.ndarray, *, has_header: bool, longest: int, is_end: bool) -> str:
    """The one of comma, semicolon, tab and bar that gives the header most columns.

    Bars, which names of columns may hold as well, do so beside another delimiter only if the first
    rows have as many cells. Without a header, the one that gives most of the first rows as many
    cells as the first of them, two or more; bars, which are common in texts, must do so in all of
    these rows.

    Args:
        sample: uint8, the beginning of the file.
        has_header: whether the first record is one.
        longest: characters of a record.
        is_end: whether the sample is the whole file.
    """

    def agreement(delimiter: str) -> float:
        records = find_records(
            sample,
            delimiter=ord(delimiter),
            has_quotes=True,
            first_line=1,
            longest=longest,
            most_records=1 if has_header and delimiter != "|" else _SAMPLED_RECORDS,
            is_end=is_end,
        )
        counts = np.diff(records.offsets)[records.faults == SOUND]
        if not len(counts) or (has_header and records.faults[0] != SOUND):
            return 0
        if has_header:
            are_alike = bool((counts == counts[0]).all())
            return int(counts[0]) if are_alike else min(int(counts[0]), 1.5)
        alike = (counts == counts[0]) & (counts > 1)
        return int(alike.sum()) if delimiter != "|" or alike.all() else 0

    return max(DELIMITERS, key=agreement)


def named_delimiter(sample: np.ndarray) -> str | None:
    """The delimiter that a first line `sep=;` names; None without such a line."""
    found = _NAMED_DELIMITER.match(sample[:256].tobytes())
    return found[1].decode("latin-1") if found else None


def is_quoted_tsv(sample: np.ndarray, *, longest: int, is_end: bool) -> bool:
    """Whether the cells of a TSV file are quoted as those of CSV, which pandas and Excel do.

    Every cell that begins with a quote is then quoted well, and some are by need: within a line
    they hold doubled quotes, or they hold tabs and line ends without which rows would not have the
    cells of the header. Texts that only begin with a quote, as in the files of GLUE, are not.

    Args:
        sample: uint8, the beginning of the file.
        longest: characters of a record.
        is_end: whether the sample is the whole file.
    """
    if _QUOTE not in sample:
        return False
    plain, quoted = (
        find_records(
            sample,
            delimiter=ord("\t"),
            has_quotes=has_quotes,
            first_line=1,
            longest=longest,
            is_end=is_end,
        )
        for has_quotes in (False, True)
    )
    if not len(quoted.faults) or (quoted.faults != SOUND).any():
        return False
    broken, left = (
        int(np.count_nonzero(counts != counts[0]))
        for counts in (np.diff(plain.offsets), np.diff(quoted.offsets))
    )
    starts, stops = quoted.field_starts, quoted.field_stops
    is_quoted = (starts > 0) & (sample[np.maximum(starts - 1, 0)] == _QUOTE)
    if left < broken:
        return bool(is_quoted.any())
    quotes, breaks = (
        np.concatenate([[0], np.cumsum(np.isin(sample, each))])
        for each in ([_QUOTE], [ord("\t"), ord("\n"), ord("\r")])
    )
    is_one_line = breaks[starts] == breaks[stops]
    is_header_quoted = (
        len(quoted.lines) == len(plain.lines) and is_quoted[: quoted.offsets[1]].all()
    )
    return bool(
        is_header_quoted or (is_quoted & is_one_line & (quotes[starts] < quotes[stops])).any()
    )


def first_cells(data: np.ndarray, records: Records) -> list[str]:
    """The cells of the first record, which must be sound; other bytes than UTF-8 are surrogates."""
    fields = np.arange(records.offsets[1])
    copied, offsets = field_bytes(data, records, fields)
    content, bounds = copied.tobytes(), offsets.tolist()
    return [
        content[begin:end].decode("utf-8", "surrogateescape")
        for begin, end in itertools.pairwise(bounds)
    ]

"""Which character separates the cells of a CSV file, and what its header says."""

from __future__ import annotations

import itertools

import numpy as np

from bert_tf.data.tables.formats.csv_records import SOUND, Records, field_bytes, find_records

DELIMITERS = (",", ";", "\t")
_SAMPLED_RECORDS = 20  # that the delimiter of a file without a header is found in


def find_delimiter(sample: np.ndarray, *, has_header: bool, longest: int, is_end: bool) -> str:
    """The one of comma, semicolon and tab that gives the header most columns.

    Without a header, the one that gives most of the first rows as many cells as the first of them,
    two or more.

    Args:
        sample: uint8, the beginning of the file.
        has_header: whether the first record is one.
        longest: characters of a record.
        is_end: whether the sample is the whole file.
    """

    def agreement(delimiter: str) -> int:
        records = find_records(
            sample,
            delimiter=ord(delimiter),
            has_quotes=True,
            first_line=1,
            longest=longest,
            most_records=1 if has_header else _SAMPLED_RECORDS,
            is_end=is_end,
        )
        counts = np.diff(records.offsets)[records.faults == SOUND]
        if not len(counts):
            return 0
        return int(counts[0] if has_header else ((counts == counts[0]) & (counts > 1)).sum())

    return max(DELIMITERS, key=agreement)


def first_cells(data: np.ndarray, records: Records) -> list[str]:
    """The cells of the first record, which must be sound; other bytes than UTF-8 are surrogates."""
    fields = np.arange(records.offsets[1])
    copied, offsets = field_bytes(data, records, fields)
    content, bounds = copied.tobytes(), offsets.tolist()
    return [
        content[begin:end].decode("utf-8", "surrogateescape")
        for begin, end in itertools.pairwise(bounds)
    ]

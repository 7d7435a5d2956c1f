"""Which character encoding a text file likely has."""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.errors import InputError
from bert_tf.data.tables.file_names import table_format_by_name
from bert_tf.data.tables.text_files import has_surrogates, open_text

_MOST_CHARACTERS = 4_000_000
_UNDEFINED_IN_CP1252 = frozenset("\udc81\udc8d\udc8f\udc90\udc9d")


def likely_encoding(path: str | Path) -> str:
    """`utf-8`, or `cp1252` or `latin-1` where more lines fail to be UTF-8 than need it.

    UTF-16 is known by its byte-order mark, which readers see to. Any byte is a character of
    Latin-1, so this is a guess, and the caller should say so.

    Args:
        path: a file, compressed or not; its first four million characters are looked at.

    Raises:
        InputError: it is empty.
        UsageError: it cannot be read.
    """
    if table_format_by_name(str(path)) == "parquet":
        return "utf-8"
    with open_text(path, newline="\n") as stream:
        text = stream.read(_MOST_CHARACTERS)
    if not text.strip():
        raise InputError(f"{path}: is empty; there is nothing to look at")
    invalid = valid = 0
    for line in text.splitlines():
        if has_surrogates(line):
            invalid += 1
        elif not line.isascii():
            valid += 1
    if invalid <= valid:
        return "utf-8"
    return "latin-1" if _UNDEFINED_IN_CP1252.intersection(text) else "cp1252"

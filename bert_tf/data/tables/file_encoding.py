"""The likely encoding of a file whose lines are not UTF-8, and advice to its owner."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from bert_tf.base.errors import BertPipelineError, InputError
from bert_tf.data.tables.compression import uncompressed
from bert_tf.data.tables.encodings import (
    escaping_encoding,
    has_too_many_controls,
    is_utf8,
    likely_encoding,
    wide_encoding,
)
from bert_tf.data.tables.file_names import table_format_by_name
from bert_tf.data.tables.text_files import MARKS, SAMPLE_BYTES, open_local

_STEP_BYTES = 1 << 22
_MOST_STEPS = 16
_GUESSED_FROM_BYTES = 1 << 14  # of lines that are not UTF-8


def file_encoding(path: str | Path) -> str | None:
    """`utf-8`, or the likely encoding where more lines fail to be UTF-8 than need it; None where
    none of the usual ones makes text of them. Readers see to byte-order marks.

    Args:
        path: a file of this machine, compressed or not; its first 64 MB are looked at.

    Raises:
        InputError: it is empty, or damaged.
        UsageError: it cannot be read.
    """
    if table_format_by_name(str(path)) == "parquet":
        return "utf-8"
    with open_local(str(path)) as stored:
        try:
            return _encoding(uncompressed(stored, str(path)), str(path))
        except OSError as error:
            raise InputError(f"{path}: cannot be read to its end ({error})") from None


def _encoding(stream: BinaryIO, path: str) -> str | None:
    step = _step(stream)
    if not step.strip():
        raise InputError(f"{path}: is empty; there is nothing to look at")
    if step.startswith(tuple(MARKS)):
        return "utf-8"
    sample = step[:SAMPLE_BYTES]
    is_odd = has_too_many_controls(sample)
    if is_odd or (b"\0" in sample and not is_utf8(sample)):
        name = wide_encoding(sample)
        if is_odd or name is not None:
            return name
    if (name := escaping_encoding(sample)) is not None:
        return name
    rest, valid, invalid = b"", 0, list[bytes]()
    for _ in range(_MOST_STEPS):
        *lines, rest = (rest + step).split(b"\n")
        step = _step(stream)
        for line in lines if step else [*lines, rest]:
            if not line.isascii():
                is_sound = is_utf8(line + b"\n")  # no character may be cut
                valid += is_sound
                invalid += [] if is_sound else [line]
        if invalid or not step:
            break
    if len(invalid) <= valid:
        return "utf-8"
    guessed_from = b"\n".join(invalid)[:_GUESSED_FROM_BYTES]
    return likely_encoding(guessed_from) or wide_encoding(sample)


def _step(stream: BinaryIO) -> bytes:
    parts = []
    missing = _STEP_BYTES
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def encoding_advice(path: str) -> str:
    """What to do about lines of a file that are not UTF-8; it never fails."""
    if table_format_by_name(path) == "parquet":
        return "write its texts as UTF-8"
    try:
        name = file_encoding(path)
    except BertPipelineError:  # gone, or on other storage
        name = None
    if name == "utf-8":
        return "the file is UTF-8 but for such lines; correct them"
    if name is None:
        return "its encoding cannot be told from the text; name it with --encoding"
    return f"the file looks like {name}; give --encoding {name}"

"""Opening text files as people have them: compressed or not, with or without a byte-order mark."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from bert_tf.config.errors import InputError, UsageError

_SURROGATE = re.compile("[\ud800-\udfff]")
_WIDE_ENCODING_MARKS = (b"\xff\xfe", b"\xfe\xff")


@contextmanager
def open_text(path: str | Path, *, newline: str) -> Iterator[TextIO]:
    """Opens a UTF-8 file, `.gz` or plain, without its byte-order mark.

    Bytes that are not UTF-8 arrive as lone surrogates, see `has_surrogates`, so that one bad line
    does not end the reading of a file.

    Args:
        path: file; a name ending in .gz is decompressed.
        newline: as in `open`: "" splits lines at LF, CR and CRLF, "\\n" at LF only; line ends are
            kept.

    Raises:
        UsageError: the file is missing, or a folder.
        InputError: the file is UTF-16, or its compression is damaged (also while reading).
    """
    path = Path(path)
    try:
        binary = path.open("rb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    with binary:
        buffered: io.BufferedReader | gzip.GzipFile = binary
        if path.name.endswith(".gz"):
            buffered = gzip.GzipFile(fileobj=binary)
        try:
            if buffered.peek(2)[:2] in _WIDE_ENCODING_MARKS:
                raise InputError(
                    f"{path}: is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 {path.name}"
                )
            with io.TextIOWrapper(
                cast(io.BufferedReader, buffered),
                encoding="utf-8-sig",
                errors="surrogateescape",
                newline=newline,
            ) as stream:
                yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"{path}: compression is damaged ({error}); copy or compress the file again"
            ) from None


def has_surrogates(text: str) -> bool:
    """Whether a text holds bytes that were not UTF-8, or halves of a surrogate pair."""
    return not text.isascii() and _SURROGATE.search(text) is not None

"""Text files: compressed or not, of any encoding, with or without a byte-order mark.

Every text becomes UTF-8 first, part by part (`open_utf8`), so that all readers only know UTF-8.
Bytes that are not text of the encoding become bytes that are not UTF-8, and the reader rejects the
rows that have them.
"""

from __future__ import annotations

import codecs
import dataclasses
import io
import json
import re
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from bert_tf.base.errors import BertPipelineError, InputError, UsageError
from bert_tf.base.files import check_lfs_pointer
from bert_tf.data.tables.compression import PartStream, uncompressed
from bert_tf.data.tables.dialect import compression_of, table_format_by_name
from bert_tf.data.tables.encodings import (
    control_count,
    escaping_encoding,
    file_kind,
    has_too_many_controls,
    is_utf8,
    likely_encoding,
    wide_encoding,
)

Opener = Callable[[str], BinaryIO]  # opens a file by its name to read its bytes as they are stored

_BUFFER_BYTES = 1 << 18
_NEAR_BYTES = 1 << 12  # checked after a first NUL character
_HOLE = re.compile(rb"\0{4,}")  # left by a crash or a full disk; UTF-32 has three in a row
_SKIPPED_CHUNK = 1 << 20  # characters skipped at once of a line that is too long
_CUT_CHARACTERS = 1000  # kept of such a line
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\(?:u|U0000)[dD][89a-fA-F]")
# The encodings that begin with a byte-order mark
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins as that of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8",
}

SAMPLE_BYTES = 1 << 16  # of a file, which must be text of its encoding


def open_local(path: str) -> BinaryIO:
    """Open a local file.

    Raises:
        UsageError: the file is missing, a folder, or a pipe.
        InputError: it is a pointer of Git LFS.
    """
    try:
        if stat.S_ISFIFO(Path(path).stat().st_mode):
            raise UsageError(f"{path}: is a pipe; write it to a file first, it is read twice")
        check_lfs_pointer(Path(path))
        return Path(path).open("rb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); check the path") from None


@contextmanager
def open_text(
    path: str | Path, *, newline: str, encoding: str = "utf-8", opener: Opener = open_local
) -> Iterator[TextIO]:
    r"""Open a text file, compressed by its name or plain, without its byte-order mark.

    Bytes that are not of the encoding become lone surrogates (`has_surrogates`), so that a bad line
    does not stop the reading of the file.

    Args:
        path: the file.
        newline: as of `open`: "" splits lines at LF, CR and CRLF, "\n" at LF only; line ends are
            kept.
        encoding: as Python names it.
        opener: opens the file, which may be on other storage.

    Raises:
        UsageError: the file is missing or a folder.
        InputError: it is not text, or its byte-order mark is that of another encoding; or, while
            reading, it is not of the encoding, its compression is damaged, or storage fails.
    """
    with (
        open_utf8(path, encoding=encoding, opener=opener) as file,
        io.BufferedReader(
            PartStream(iter(lambda: file.read(_BUFFER_BYTES), b"")), _BUFFER_BYTES
        ) as buffered,
        io.TextIOWrapper(
            buffered, encoding="utf-8", errors="surrogateescape", newline=newline
        ) as text,
    ):
        yield text


@dataclasses.dataclass(frozen=True)
class Utf8File:
    """A text of any encoding as bytes of UTF-8."""

    read: Callable[[int], bytes]  # returns the next bytes, about so many; b"" at the end
    has_mark: bool  # whether the file begins with a byte-order mark, which is not part of the bytes


@contextmanager
def open_utf8(
    path: str | Path, *, encoding: str = "utf-8", opener: Opener = open_local
) -> Iterator[Utf8File]:
    """Open a text file as bytes of UTF-8; arguments and errors as of `open_text`."""
    with _open_bytes(path, opener) as buffered:
        beginning = buffered.peek(SAMPLE_BYTES)
        has_mark = beginning.startswith(tuple(MARKS))
        transcoder = transcoder_of(path, beginning, encoding)
        if transcoder is None:
            if has_mark:
                buffered.read(len(codecs.BOM_UTF8))
            yield Utf8File(lambda size: checked_part(path, buffered.read(size)), has_mark)
            return

        def read(size: int) -> bytes:
            while True:
                part = buffered.read(size)
                data = transcoder.transcode(part, is_end=not part)
                if data or not part:
                    return data

        yield Utf8File(read, has_mark)


class Transcoder:
    """Turns text into UTF-8, part by part; bytes not of the encoding become invalid UTF-8.

    Args:
        path: named in errors.
        encoding: as Python names it. `utf-16`, `utf-32` and `utf-8-sig` remove a byte-order mark.
    """

    def __init__(self, path: str | Path, encoding: str):
        self._path = path
        self._encoding = encoding
        errors = "surrogatepass" if _is_wide(encoding) else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)

    def transcode(self, part: bytes, *, is_end: bool = False) -> bytes:
        """Turn the next part into UTF-8, except a character that is cut at its end.

        Args:
            part: next bytes.
            is_end: whether they are the last ones. A cut character is then invalid UTF-8.

        Raises:
            InputError: the bytes cannot be text of the encoding.
        """
        try:
            data = self._decoder.decode(part).encode("utf-8", "surrogatepass")
        except UnicodeError as error:
            raise InputError(
                f"{self._path}: cannot be read as {self._encoding} ({error}); give another "
                "--encoding"
            ) from None
        if is_end and self._decoder.getstate()[0]:
            self._decoder.reset()
            return data + b"\xff"
        return data


def transcoder_of(path: str | Path, first_bytes: bytes, encoding: str) -> Transcoder | None:
    """Return the converter of a file to UTF-8; None if it is UTF-8, with or without a mark.

    Args:
        path: named in errors.
        first_bytes: the first SAMPLE_BYTES, or all there are.
        encoding: as Python names it. If it is UTF-8, a byte-order mark of UTF-16 or UTF-32 decides.

    Raises:
        InputError: the file is of another encoding by its byte-order mark, or not text.
    """
    name = _decoder_of(path, first_bytes, encoding)
    if not _is_wide(name):
        _check_is_text(path, first_bytes, name)
    return None if name == "utf-8-sig" else Transcoder(path, name)


def checked_part(path: str | Path, part: bytes) -> bytes:
    """Return a part of a UTF-8 file; raise InputError if a file in UTF-16 was appended to it."""
    first = part.find(b"\0")
    if first >= 0 and has_too_many_controls(_HOLE.sub(b"", part[first : first + _NEAR_BYTES])):
        raise InputError(
            f"{path}: begins as UTF-8 and continues with NUL characters, as in UTF-16; write all "
            "of it in one encoding"
        )
    return part


@contextmanager
def _open_bytes(path: str | Path, opener: Opener) -> Iterator[io.BufferedReader]:
    """Open a file for its decompressed bytes; an OSError while reading becomes an InputError."""
    with opener(str(path)) as binary:
        try:
            raw = cast(io.RawIOBase, uncompressed(binary, str(path)))
            yield io.BufferedReader(raw, _BUFFER_BYTES)
        except OSError as error:
            message = error.strerror or next(iter(str(error).splitlines()), type(error).__name__)
            if error.errno is None and compression_of(str(path)):
                raise InputError(
                    f"{path}: compression is damaged ({message}); copy or compress the file again"
                ) from None
            raise InputError(
                f"{path}: cannot be read to its end ({message}); try again, or copy the file"
            ) from None


def _decoder_of(path: str | Path, first_bytes: bytes, encoding: str) -> str:
    """Return the encoding to decode a file with, so that its byte-order mark is left out."""
    name = codecs.lookup(encoding).name
    marked = next((MARKS[mark] for mark in MARKS if first_bytes.startswith(mark)), None)
    is_utf8 = name in ("utf-8", "utf-8-sig")
    if is_utf8 and marked in (None, "utf-8"):
        return "utf-8-sig"
    if marked is None:
        return name
    if marked == "utf-8":
        raise InputError(
            f"{path}: begins with the byte-order mark of UTF-8; leave --encoding {encoding} out"
        )
    if is_utf8 or name.startswith(marked):
        return marked
    raise InputError(
        f"{path}: is {marked.upper()}; give --encoding {marked}, or convert it: "
        f"iconv -f {marked.upper()} -t UTF-8 {Path(path).name}"
    )


def _check_is_text(path: str | Path, sample: bytes, encoding: str) -> None:
    """Raise InputError if a sample is not text, or is text of another encoding."""
    kind = file_kind(sample)
    if kind is not None:
        name, advice = kind
        advice = advice.format(name=shlex.quote(Path(path).name))
        raise InputError(f"{path}: is {name}, not text; {advice}")
    guessed = escaping_encoding(sample)
    if guessed is not None and not encoding.startswith("iso2022"):
        encoding_name = "UTF-8" if encoding == "utf-8-sig" else encoding
        raise InputError(
            f"{path}: is {guessed.upper()}, not {encoding_name}; give --encoding {guessed}"
        )
    is_odd = has_too_many_controls(sample)
    if not is_odd and (b"\0" not in sample or is_utf8(sample)):
        return
    guessed = wide_encoding(sample)
    if guessed is not None:
        raise InputError(
            f"{path}: is {guessed[:6].upper()} without a byte-order mark; give --encoding {guessed}"
        )
    if is_odd:
        raise InputError(
            f"{path}: is not text, {control_count(sample):,} of its first {len(sample):,} bytes "
            "are NUL or other control characters; remove the file, or replace them"
        )


def _is_wide(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


class CutLine(str):
    """The beginning of a line that is longer than allowed."""


def bounded_lines(stream: TextIO, longest: int) -> Iterator[str]:
    """Yield the lines of a text with their ends, in bounded memory.

    Args:
        stream: text whose lines end with LF.
        longest: most characters of a line; a longer one is yielded as `CutLine`.
    """
    while line := stream.readline(longest + 1):
        if len(line) <= longest or line.endswith("\n"):
            yield line
            continue
        rest = line
        while rest and not rest.endswith("\n"):
            rest = stream.readline(_SKIPPED_CHUNK)
        yield CutLine(line[:_CUT_CHARACTERS])


def has_surrogates(text: str) -> bool:
    """Whether a text holds bytes that are not of its encoding, or halves of a surrogate pair."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def escapes_surrogates(written: str, value: Any) -> bool:
    """Whether a value that JSON or Python wrote holds halves of surrogate pairs, as escapes."""
    if not _ESCAPED_SURROGATE.search(written):
        return False
    return has_surrogates(json.dumps(value, ensure_ascii=False, skipkeys=True, default=str))


_STEP_BYTES = 1 << 22  # read at once
_MOST_STEPS = 16  # so that at most 64 MB are read
_GUESSED_FROM_BYTES = 1 << 14  # of lines that are not UTF-8


def file_encoding(path: str | Path) -> str | None:
    """Return the likely encoding of a file.

    Lines that are not ASCII decide: the file is UTF-8 unless more of them are invalid than valid.
    Only the first 64 MB are read.

    Returns:
        A name that Python knows; `utf-8` also for files with a byte-order mark, which readers find
        themselves; None if no encoding is likely.

    Raises:
        InputError: the file is empty or damaged.
        UsageError: it cannot be read.
    """
    if table_format_by_name(str(path)) == "parquet":
        return "utf-8"
    with _open_bytes(path, open_local) as buffered:
        return _encoding(buffered, str(path))


def _encoding(stream: io.BufferedReader, path: str) -> str | None:
    """Return the likely encoding of decompressed bytes; see `file_encoding`."""
    step = stream.read(_STEP_BYTES)
    if not step.strip():
        raise InputError(f"{path}: is empty; expected text or rows")
    if step.startswith(tuple(MARKS)):
        return "utf-8"
    sample = step[:SAMPLE_BYTES]
    is_odd = has_too_many_controls(sample)
    if is_odd or (b"\0" in sample and not is_utf8(sample)):
        name = wide_encoding(sample)
        if is_odd or name is not None:
            return name
    name = escaping_encoding(sample)
    if name is not None:
        return name
    rest = b""  # of a line whose end was not read yet
    valid = 0
    invalid: list[bytes] = []
    for _ in range(_MOST_STEPS):
        *lines, rest = (rest + step).split(b"\n")
        step = stream.read(_STEP_BYTES)
        is_end = not step
        for line in [*lines, rest] if is_end else lines:
            if line.isascii():
                continue
            if is_utf8(line + b"\n"):  # no character may be cut
                valid += 1
            else:
                invalid.append(line)
        if invalid or is_end:
            break
    if len(invalid) <= valid:
        return "utf-8"
    guessed_from = b"\n".join(invalid)[:_GUESSED_FROM_BYTES]
    return likely_encoding(guessed_from) or wide_encoding(sample)


def encoding_advice(path: str) -> str:
    """Return advice about lines of a file that are not UTF-8; never fail."""
    if table_format_by_name(path) == "parquet":
        return "write its texts as UTF-8"
    try:
        name = file_encoding(path)
    except BertPipelineError:  # gone, or on other storage
        name = None
    if name == "utf-8":
        return "the file is UTF-8 except for such lines; correct them"
    if name is None:
        return "its encoding cannot be detected; give it with --encoding"
    return f"the file looks like {name}; give --encoding {name}"

"""Files that a glob matches, their uncompressed bytes, and files that workers write."""

from __future__ import annotations

import dataclasses
import json
import socket
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, BinaryIO

from apache_beam.io.filesystems import FileSystems

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import replacing_file
from bert_tf.data.tables.compression import uncompressed
from bert_tf.data.tables.text_files import SAMPLE_BYTES, checked_part, transcoder_of
from pipeline.beam.globs import FORMAT_OF_ENDING, instead_of_folder, why_no_file
from pipeline.beam.own_files import own_files
from pipeline.beam.storage import innermost_message, list_stored, open_stored
from pipeline.beam.stored_path import path_of


@dataclasses.dataclass(frozen=True)
class FileInfo:
    """A file to read, and its size as stored."""

    path: str
    bytes: int


def match_files(
    patterns: Iterable[str],
    *,
    endings: Collection[str] = FORMAT_OF_ENDING,
    output: str | None = None,
    console: Console | None = None,
) -> list[FileInfo]:
    """Expand paths and globs of any storage to files, sorted by path, each once.

    Globs leave out `own_files` of the job with this output; the console lists them.

    Args:
        patterns: paths and globs.
        endings: of readable files, for the hint if a folder is named.
        output: of the job; None if it has none.
        console: None to list nothing.

    Raises:
        UsageError: a pattern matches no file, or names a folder, a file whose name is not UTF-8 or
            an unreachable file system.
    """
    sizes: dict[str, int] = {}
    for pattern in patterns:
        files = list_stored(pattern)
        if not files:
            raise UsageError(f"{pattern}: {why_no_file(pattern)}")
        folders = [path for path in files if Path(path).is_dir()]
        if folders:
            hint = instead_of_folder(folders[0], endings)
            raise UsageError(f"{folders[0]}: is a folder; {hint}")
        own = own_files(files, pattern, output)
        own_paths = frozenset(own)
        if own and console is not None:
            more = f" and {len(own) - 1:,} more" if len(own) > 1 else ""
            console.info(f"{pattern}: ignoring {own[0]}{more}, which bert-pipeline made")
        if len(own) == len(files):
            raise UsageError(f"{pattern}: only matches {own[0]}, which bert-pipeline made")
        sizes.update({path: size for path, size in files.items() if path not in own_paths})
    for path in sorted(sizes):
        if path != path.encode("utf-8", "replace").decode():  # manifests could not hold it
            raise UsageError(f"{path!r}: the name of this file is not UTF-8; rename it")
    return [FileInfo(path, sizes[path]) for path in sorted(sizes)]


class UncompressedFile:
    """A file's uncompressed bytes as UTF-8; also a context manager.

    Text in another encoding, or with the byte-order mark of UTF-16 or UTF-32, is transcoded
    (`is_transcoded`). Bytes that are no text of the encoding become invalid UTF-8, which readers
    reject.

    Args:
        path: on any storage.
        encoding: of the text; None for any bytes.
        unpack: decompresses a stream by the name of its file.

    Raises:
        UsageError: the file cannot be opened.
        InputError: the compressed data is damaged, the byte-order mark contradicts the encoding, or
            the file is not text.
    """

    def __init__(
        self,
        path: str,
        encoding: str | None = "utf-8",
        unpack: Callable[[BinaryIO, str], BinaryIO] = uncompressed,
    ):
        self._path = path
        self._is_text = encoding is not None
        self._file = open_stored(path)
        try:
            self._stream = unpack(self._file, path)
            self._pending = self._read_stored(SAMPLE_BYTES)
            transcoder = None
            if encoding is not None:
                transcoder = transcoder_of(path, self._pending, encoding)
            if transcoder is not None:
                self._pending = transcoder.transcode(self._pending)
        except BaseException:
            self._file.close()
            raise
        self._transcoder = transcoder
        self.is_transcoded = transcoder is not None

    def __enter__(self) -> UncompressedFile:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    @property
    def stored_position(self) -> int:
        """Return the number of bytes of the stored file that were read.

        Up to `READ_AHEAD_BYTES` of them were not used yet.
        """
        return self._file.tell()

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end.

        Raises:
            InputError: the file is damaged.
        """
        parts = [self._pending]
        missing = size - len(self._pending)
        while missing > 0:
            part = self._read_stored(missing)
            is_end = len(part) < missing
            if self._transcoder is not None:
                part = self._transcoder.transcode(part, is_end=is_end)
            elif self._is_text:
                checked_part(self._path, part)
            parts.append(part)
            missing -= len(part)
            if is_end:
                break
        joined = b"".join(parts)
        self._pending = joined[size:]
        return joined[:size]

    def _read_stored(self, size: int) -> bytes:
        """Read `size` uncompressed bytes as they are, fewer only at the end."""
        parts = []
        while size > 0:
            try:
                part = self._stream.read(size)
            except OSError as error:
                raise damaged(self._path, innermost_message(error)) from None
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def damaged(path: str, fault: str) -> InputError:
    """Make the error of a file that cannot be read to its end."""
    return InputError(f"{path}: cannot be read to its end ({fault}); make or download it again")


def check_shared(folder: str) -> None:
    """Raise UsageError, in a worker, if it does not see a folder of the submitting process."""
    if "://" not in folder and not FileSystems.exists(folder):
        raise UsageError(
            f"{folder}: worker {socket.gethostname()} does not see this folder; the output must be "
            "on storage that all workers and the submitting machine mount under the same path"
        )


def write_shared_file(folder: str, name: str, data: bytes) -> None:
    """Write a worker's result atomically; it replaces an earlier file of this name.

    Args:
        folder: that all workers and the submitter see.
        name: of the file.
        data: its content.
    """
    check_shared(folder)
    with replacing_file(path_of(folder) / name, lasting=False) as aside:
        aside.write_bytes(data)


def write_shared_json(value: Any, folder: str, name: str) -> None:
    """Write a worker's result as JSON, see `write_shared_file`."""
    write_shared_file(folder, name, json.dumps(value).encode())


def read_shared_files(folder: str, pattern: str, *, may_be_none: bool = False) -> list[bytes]:
    """Read workers' files in order of names.

    Args:
        folder: that all workers and the submitter see.
        pattern: glob of the names.
        may_be_none: whether there may be no such file.

    Raises:
        InputError: there is none.
    """
    paths = sorted(path_of(folder).glob(pattern))
    if not paths and not may_be_none:
        raise InputError(
            f"{folder}: the workers' results have not arrived; with a cluster runner the output "
            "must be on storage that all machines share"
        )
    return [path.read_bytes() for path in paths]

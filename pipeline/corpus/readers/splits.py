"""Splits of files at the borders of documents, by which workers share a file."""

from __future__ import annotations

import abc
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import pyarrow as pa

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.compression import READ_AHEAD_BYTES
from bert_tf.data.tables.dialect import PLAIN, TableDialect, compression_of
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.files import UncompressedFile
from pipeline.beam.storage import open_stored
from pipeline.corpus.evidence import Evidence, tally_columns
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.readers.bzip2 import BlockStream, read_blocks

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HEAD_BYTES = 2_000_000  # of a stored file, from which its uncompressed size is estimated
_STEP_BYTES = 1 << 18  # read at a time for that
_MOST_SKIPPED_BYTES = 1 << 24  # of a block, which are read again for each of its splits
# (stored file, its path, first_bit=0) -> the first bit of each block from there on, and its bytes.
BlockReader = Callable[..., Iterator[tuple[int, bytes]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """Part of a file that is read by itself.

    Attributes:
        index: unique within the file, ascending.
        offset: where it begins: a byte of the uncompressed file, or a row (Parquet).
        length: bytes or rows; negative means the whole file, cut while it is read.
        first_line: number of its first line or row, from 1.
        block_bit, block_offset: where the compressed block that holds the first byte begins: bit of
            the stored file and byte of the uncompressed file.
    """

    index: int = 0
    offset: int = 0
    length: int = -1
    first_line: int = 1
    block_bit: int = 0
    block_offset: int = 0


WHOLE_FILE = Split()


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Bytes of a split that hold whole documents.

    Attributes:
        index: number of the chunk in the file, from 0.
        offset: where its bytes begin in the uncompressed file.
        first_line: number of its first line, from 1.
        data: its bytes, without the file's byte-order mark.
    """

    index: int
    offset: int
    first_line: int
    data: bytes

    def split(self) -> Split:
        return Split(
            index=self.index, offset=self.offset, length=len(self.data), first_line=self.first_line
        )


# Line and text of a document, an unreadable document, or the reason why a document is left out.
DocumentOutcome = tuple[int, bytes] | Reject | str


def collect(
    path: str,
    chunk: Chunk,
    documents: Iterable[DocumentOutcome],
    cells: Mapping[str, list[Any]] = MappingProxyType({}),
) -> RawBlock:
    """Make the block of a chunk.

    Args:
        path: the file.
        chunk: the chunk.
        documents: its documents, read one by one.
        cells: by column, for `tally_columns`; `documents` may fill it while it is read.
    """
    texts: list[bytes] = []
    lines: list[int] = []
    rejects: list[Reject] = []
    dropped: Counter[str] = Counter()
    for outcome in documents:
        if isinstance(outcome, tuple):
            line, text = outcome
            lines.append(line)
            texts.append(text)
        elif isinstance(outcome, Reject):
            rejects.append(outcome)
        else:
            dropped[outcome] += 1
    columns = {name: pa.array(values, pa.binary()) for name, values in cells.items()}
    return RawBlock(
        source=path,
        index=chunk.index,
        texts=Texts.of_rows(texts, lines),
        evidence=Evidence(rejects=rejects, dropped=dropped, tallies=tally_columns(columns)),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChunkReader(abc.ABC):
    """Base of the readers of formats whose documents follow one another in the file's bytes.

    Plain files, and compressed ones with a `block_reader`, are split at document borders; others,
    and other encodings, are one split. Damage and documents of more than `largest_document` bytes
    are InputErrors.
    """

    is_text: ClassVar[bool] = True  # otherwise the dialect's encoding does not count

    largest_document: int = int(CorpusSection.max_document_megabytes * 1e6)
    dialect: TableDialect = PLAIN

    @abc.abstractmethod
    def find_last_border(self, data: bytes) -> int:
        """Return where the last document in `data` begins; 0 if none begins after its start."""

    def count_lines(self, data: bytes, stop: int) -> int:
        return data.count(b"\n", 0, stop)

    @abc.abstractmethod
    def read(self, path: str, chunk: Chunk) -> RawBlock:
        """Read whole documents; unreadable ones become rejects."""

    def resolved(self, path: str, *, is_sample: bool = False) -> ChunkReader:
        """See `Reader.resolved`."""
        del path, is_sample
        return self

    def _open(self, path: str) -> UncompressedFile:
        return UncompressedFile(path, self.dialect.encoding if self.is_text else None)

    def block_reader(self, path: str) -> BlockReader | None:
        """Read a compressed file from any of its blocks on; None if it cannot be split."""
        return read_blocks if compression_of(path) == "bz2" else None

    def splits(self, path: str, block_bytes: int) -> Iterator[Split]:
        with self._open(path) as file:
            if compression_of(path) is None and not file.is_transcoded:
                yield from map(Chunk.split, self._cut(file, path, block_bytes))
                return
            may_be_split = not file.is_transcoded
        if may_be_split:  # a small file is not worth reading twice
            with open_stored(path) as stored:
                may_be_split = len(stored.read(block_bytes + 1)) > block_bytes
        read = self.block_reader(path) if may_be_split else None
        splits: list[Split] = []
        if read is not None:
            with open_stored(path) as stored:
                stream = BlockStream(read(stored, path))
                for chunk in self._cut(stream, path, block_bytes):
                    bit, offset = stream.block_of(chunk.offset)
                    if chunk.offset - offset > _MOST_SKIPPED_BYTES:
                        splits = []
                        break
                    split = dataclasses.replace(chunk.split(), block_bit=bit, block_offset=offset)
                    splits.append(split)
        yield from splits or [WHOLE_FILE]

    def read_split(self, path: str, split: Split, block_bytes: int) -> Iterator[RawBlock]:
        """Read a split by blocks; raise UsageError if the file has changed since it was split."""
        if split.length < 0:
            with self._open(path) as file:
                for chunk in self._cut(file, path, block_bytes):
                    block = self.read(path, chunk)
                    yield dataclasses.replace(
                        block, invalid_text=self.dialect.invalid_text, size=len(chunk.data)
                    )
            return
        data = self._bytes_of(path, split)
        if len(data) != split.length:
            raise UsageError(f"{path}: was cut short while it was read; start again")
        block = self.read(path, Chunk(split.index, split.offset, split.first_line, data))
        yield dataclasses.replace(block, size=len(data))

    def _bytes_of(self, path: str, split: Split) -> bytes:
        """Return the uncompressed bytes of a split; fewer if the file was cut short."""
        read = self.block_reader(path)
        with open_stored(path) as file:
            if read is None:
                file.seek(split.offset)
                return file.read(split.length)
            stream = BlockStream(read(file, path, first_bit=split.block_bit))
            stream.read(split.offset - split.block_offset)
            return stream.read(split.length)

    def whole_size(self, path: str, stored_bytes: int) -> float:
        with self._open(path) as file:
            if compression_of(path) is None and not file.is_transcoded:
                return float(stored_bytes)
            size = 0
            while part := file.read(_STEP_BYTES):
                size += len(part)
                stored = file.stored_position - READ_AHEAD_BYTES // 2
                if stored >= _HEAD_BYTES:
                    return size * stored_bytes / stored
            return float(size)

    def _cut(
        self, stream: UncompressedFile | BlockStream, path: str, chunk_bytes: int
    ) -> Iterator[Chunk]:
        """Yield chunks of whole documents, about `chunk_bytes`; cuts depend only on content."""
        index = 0
        line = 1
        pending = stream.read(max(chunk_bytes, len(BYTE_ORDER_MARK)))
        offset = len(BYTE_ORDER_MARK) if pending.startswith(BYTE_ORDER_MARK) else 0
        pending = pending[offset:]
        target = chunk_bytes
        while True:
            more = stream.read(max(target - len(pending), 1))
            pending += more
            border = self.find_last_border(pending) if more else len(pending)
            if border:
                yield Chunk(index, offset, line, pending[:border])
                line += self.count_lines(pending, border)
                index += 1
                offset += border
                pending = pending[border:]
                target = chunk_bytes
            elif len(pending) > self.largest_document:
                raise InputError(
                    f"{path}:{line}: a document of more than {self.largest_document / 1e6:g} MB "
                    "begins here; separate the documents of the file, check its layout, or raise "
                    "max_document_megabytes"
                )
            else:
                target = min(2 * len(pending), max(self.largest_document + 1, len(pending)))
            if not more:
                return

"""How the files of a format are shared out among workers: in splits of whole documents."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.compression import READ_AHEAD_BYTES
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.file_names import compression_of
from pipeline.beam.files import UncompressedFile
from pipeline.beam.storage import open_stored
from pipeline.corpus.blocks.raw_block import RawBlock
from pipeline.corpus.readers.bzip2 import BlockStream, read_blocks
from pipeline.corpus.readers.chunks import Chunk, cut_chunks

_HEAD_BYTES = 2_000_000  # as stored
_STEP_BYTES = 1 << 18


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """What one worker reads of a file at a time.

    Attributes:
        index: unique within the file, ascending.
        offset: where it begins: a byte of the uncompressed file, or a row (Parquet).
        length: bytes or rows; a negative length means the whole file, cut while it is read.
        first_line: number of its first line or row, from 1.
        block_bit, block_offset: in bzip2 files the block that holds the first byte: the bit of the
            stored file and the byte of the uncompressed file where it begins.
    """

    index: int = 0
    offset: int = 0
    length: int = -1
    first_line: int = 1
    block_bit: int = 0
    block_offset: int = 0


WHOLE_FILE = Split()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChunkReader(abc.ABC):
    """Base of the readers of formats whose documents follow one another in the file's bytes.

    Plain files are split at the borders of documents, bzip2 files too (their blocks can be read on
    their own); other compressed files and encodings are one split, read as a stream.

    Attributes:
        largest_document: bytes; a file with a larger one is refused.
        dialect: encoding, header and longest row.
    """

    largest_document: int = int(CorpusSection.max_document_megabytes * 1e6)
    dialect: TableDialect = PLAIN

    @abc.abstractmethod
    def find_last_border(self, data: bytes) -> int:
        """Offset of the last beginning of a document in `data`, 0 if there is none.

        `data` itself begins with a document.
        """

    def count_lines(self, data: bytes, stop: int) -> int:
        """Line ends in the bytes before a place."""
        return data.count(b"\n", 0, stop)

    @abc.abstractmethod
    def read(self, path: str, chunk: Chunk) -> RawBlock:
        """Reads whole documents; what cannot be read goes to the rejects."""

    def resolved(self, path: str) -> ChunkReader:
        """With everything decided that depends on the file's whole content."""
        del path
        return self

    def splits(self, path: str, block_bytes: int) -> Iterator[Split]:
        """Cuts a file into splits of about `block_bytes`.

        Raises:
            InputError: the file is damaged, or a document is too large.
        """
        compression = compression_of(path)
        with UncompressedFile(path, self.dialect.encoding) as file:
            if compression is None and not file.is_transcoded:
                for chunk in self._cut(file, path, block_bytes):
                    yield _split(chunk)
                return
            may_be_split = compression == "bz2" and not file.is_transcoded
        if may_be_split and _is_larger(path, block_bytes):
            yield from self._splits_of_bzip2(path, block_bytes)
        else:
            yield WHOLE_FILE

    def _splits_of_bzip2(self, path: str, block_bytes: int) -> Iterator[Split]:
        with open_stored(path) as file:
            stream = BlockStream(read_blocks(file, path))
            for chunk in self._cut(stream, path, block_bytes):
                bit, offset = stream.block_of(chunk.offset)
                yield dataclasses.replace(_split(chunk), block_bit=bit, block_offset=offset)

    def read_split(self, path: str, split: Split, block_bytes: int) -> Iterator[RawBlock]:
        """Reads a split, a block at a time.

        Raises:
            UsageError: the file has changed since it was cut.
            InputError: the file is damaged.
        """
        if split.length < 0:
            with UncompressedFile(path, self.dialect.encoding) as file:
                for chunk in self._cut(file, path, block_bytes):
                    block = self.read(path, chunk)
                    yield dataclasses.replace(
                        block, invalid_text=self.dialect.invalid_text, size=len(chunk.data)
                    )
            return
        data = _bytes_of(path, split)
        if len(data) != split.length:
            raise UsageError(f"{path}: was cut short while it was read; start again")
        block = self.read(path, Chunk(split.index, split.offset, split.first_line, data))
        yield dataclasses.replace(block, size=len(data))

    def whole_size(self, path: str, stored_bytes: int) -> float:
        """See `Reader`; what the beginning of a compressed file holds stands for all of it."""
        with UncompressedFile(path, self.dialect.encoding) as file:
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
        self, stream: UncompressedFile | BlockStream, path: str, block_bytes: int
    ) -> Iterator[Chunk]:
        return cut_chunks(
            stream,
            path,
            chunk_bytes=block_bytes,
            largest_document=self.largest_document,
            find_last_border=self.find_last_border,
            count_lines=self.count_lines,
        )


def _split(chunk: Chunk) -> Split:
    return Split(
        index=chunk.index,
        offset=chunk.offset,
        length=len(chunk.data),
        first_line=chunk.first_line,
    )


def _bytes_of(path: str, split: Split) -> bytes:
    if compression_of(path) is None:
        with open_stored(path) as file:
            file.seek(split.offset)
            return file.read(split.length)
    with open_stored(path) as file:
        stream = BlockStream(read_blocks(file, path, first_bit=split.block_bit))
        stream.read(split.offset - split.block_offset)
        return stream.read(split.length)


def _is_larger(path: str, size: int) -> bool:
    """Whether a file as stored is larger than that: a small one is not worth reading twice."""
    with open_stored(path) as file:
        return len(file.read(size + 1)) > size

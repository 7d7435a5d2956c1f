"""The Beam transform every job begins with: from the corpus section to blocks of documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import apache_beam as beam

from bert_tf.config.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from pipeline.corpus.block import DocumentBlock
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.files import FileInfo, UncompressedFile, compression_of, match_files
from pipeline.corpus.formats import Reader, make_reader
from pipeline.corpus.pieces import Piece, cut_pieces
from pipeline.progress import tell_progress


@dataclasses.dataclass(frozen=True)
class ReadTask:
    """What one worker reads at a time: one piece of a plain file or a whole compressed one.

    Attributes:
        path: the file.
        reader: the format's reader.
        index, offset, length, first_line: the piece (see `Piece`); a negative length means the
            whole file, cut while it is read.
        rules: how what was read becomes documents.
    """

    path: str
    reader: Reader
    index: int = 0
    offset: int = 0
    length: int = -1
    first_line: int = 1
    rules: DocumentRules = dataclasses.field(default_factory=DocumentRules)


class ReadDocuments(beam.PTransform):
    """Reads all files of a corpus as `DocumentBlock`s, in no particular order.

    Files and formats are checked when the pipeline is built.

    Args:
        config: which files, and how to read them.
        files: what the globs of `config` match, if that is known already.

    Raises:
        UsageError: (when applied) a glob matches nothing, a format is unknown, a column is missing.
    """

    def __init__(self, config: CorpusSection, files: list[FileInfo] | None = None):
        super().__init__()
        self._config = config
        self._files = files

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[DocumentBlock]:
        """Lists, cuts, spreads over the workers, reads."""
        files = self._files if self._files is not None else match_files(self._config.input)
        block_bytes = max(int(self._config.block_megabytes * 1e6), 1)
        rules = DocumentRules.from_config(self._config)
        tasks = [
            ReadTask(file.path, make_reader(file.path, self._config), rules=rules) for file in files
        ]
        return (
            pipeline
            | "ListFiles" >> beam.Create(tasks)
            | "CutFiles" >> beam.FlatMap(plan_reading, block_bytes)
            | "SpreadPieces" >> beam.Reshuffle()
            | "ReadPieces" >> beam.FlatMap(read_blocks, block_bytes)
        )


def plan_reading(task: ReadTask, block_bytes: int) -> Iterator[ReadTask]:
    """Cuts a plain file into tasks of whole documents; a compressed one stays one task."""
    task = dataclasses.replace(task, reader=task.reader.resolved(task.path))
    if compression_of(task.path) is not None:
        yield task
        return
    for piece in _cut(task, block_bytes):
        yield dataclasses.replace(
            task,
            index=piece.index,
            offset=piece.offset,
            length=len(piece.data),
            first_line=piece.first_line,
        )


def read_blocks(task: ReadTask, block_bytes: int) -> Iterator[DocumentBlock]:
    """Reads what the task names, a block at a time.

    Raises:
        UsageError: the file has changed since it was cut.
    """
    if task.length < 0:
        for piece in _cut(task, block_bytes):
            yield _read_piece(task, piece)
        return
    with UncompressedFile(task.path) as file:
        file.seek(task.offset)
        data = file.read(task.length)
    if len(data) != task.length:
        raise UsageError(f"{task.path}: was cut short while it was read; start again")
    yield _read_piece(task, Piece(task.index, task.offset, task.first_line, data))


def _read_piece(task: ReadTask, piece: Piece) -> DocumentBlock:
    block = make_block(task.reader.read(task.path, piece), task.rules)
    tell_progress(len(piece.data))
    return block


def _cut(task: ReadTask, block_bytes: int) -> Iterator[Piece]:
    with UncompressedFile(task.path) as file:
        yield from cut_pieces(
            file,
            task.path,
            piece_bytes=block_bytes,
            find_last_border=task.reader.find_last_border,
        )

"""The Beam transform that reads the corpus section's files into document blocks."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import apache_beam as beam

from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.dialect import compression_of
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import FileInfo
from pipeline.beam.progress import Progress, report_progress
from pipeline.corpus.curation.exclusion import Exclusion
from pipeline.corpus.document_block import DocumentBlock, block_identity, join_blocks
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.readers.formats import Reader, make_reader
from pipeline.corpus.readers.splits import WHOLE_FILE, Split

# The first word of the names of work on blocks.
BLOCK = "block"
# A small corpus is cut into this many blocks, so that it is the work of several workers, but into
# none of fewer bytes: each costs a few milliseconds and a file.
_BLOCKS = 16
_LEAST_BLOCK_BYTES = 2_000_000
_MOST_FILES = 1000  # that are read together: opening each on remote storage takes time
_UNPACKED = 4  # bytes of text in one of a compressed file, about


@dataclasses.dataclass(frozen=True)
class ReadTask:
    """Part of a file that a worker reads.

    Attributes:
        path: the file as it was given, which rejects and duplicates name.
        reader: the format's reader.
        split: the part of the file.
        rules: settings by which texts become documents.
        folder: base of relative paths; a worker may run in another folder.
    """

    path: str
    reader: Reader
    split: Split = WHOLE_FILE
    rules: DocumentRules = dataclasses.field(default_factory=DocumentRules)
    folder: str = dataclasses.field(default_factory=lambda: str(Path.cwd()))

    @property
    def location(self) -> str:
        """The path from the folder of this process."""
        if "://" in self.path or str(Path.cwd()) == self.folder:
            return self.path
        return str(Path(self.folder) / self.path)


ReadGroup = tuple[ReadTask, ...]
"""A split, or several small files, that one worker reads at a time."""


@dataclasses.dataclass(frozen=True)
class FinishedBlock:
    """The placeholder of a block whose work (`block_work`) an interrupted run has finished."""

    name: str


def block_work(block: DocumentBlock | FinishedBlock) -> str:
    """Return the name of the work on a block, for `BlobStore.once`."""
    return block.name if isinstance(block, FinishedBlock) else f"{BLOCK}-{block_identity(block)}"


class ReadDocuments(beam.PTransform):
    """Reads all files of a corpus as `DocumentBlock`s, in no particular order.

    Building the pipeline checks formats; faults are UsageErrors. A `FinishedBlock` stands for a
    part of a file whose blocks' work the store has finished.
    """

    def __init__(
        self,
        config: CorpusSection,
        files: list[FileInfo],
        layouts: Mapping[str, str],  # of plain text
        exclusion: Exclusion | None = None,
        store: BlobStore | None = None,
    ):
        super().__init__()
        self._exclusion = exclusion
        self._config = config
        self._files = files
        self._store = store
        self._layouts = layouts

    def expand(
        self, pipeline: beam.Pipeline
    ) -> beam.PCollection[DocumentBlock] | beam.PCollection[DocumentBlock | FinishedBlock]:
        config = self._config
        block_bytes = bytes_of_block(config, self._files)
        rules = DocumentRules.from_config(config, self._exclusion)
        groups = [
            tuple(
                ReadTask(file.path, make_reader(file.path, config, self._layouts), rules=rules)
                for file in group
            )
            for group in group_files(config, self._files, block_bytes)
        ]
        tasks = (
            pipeline
            | "ListFiles" >> beam.Create(groups)
            | "CutFiles" >> beam.FlatMap(_plan_group, block_bytes)
            | "SpreadSplits" >> beam.Reshuffle()
        )
        if self._store is None:
            return tasks | "ReadSplits" >> beam.FlatMap(_read_group, block_bytes)
        return tasks | "ReadSplits" >> beam.FlatMap(read_new_blocks, block_bytes, self._store)


def bytes_of_block(config: CorpusSection, files: list[FileInfo]) -> int:
    """Return the size of the blocks of a corpus; results do not depend on it.

    It follows only from the config and input, so that an interrupted run finds its blocks again.
    """
    share = max(sum(file.bytes for file in files) // _BLOCKS, _LEAST_BLOCK_BYTES)
    return max(min(int(config.block_megabytes * 1e6), share), 1)


def group_files(
    config: CorpusSection, files: list[FileInfo], block_bytes: int
) -> list[list[FileInfo]]:
    """Group small files to be read together.

    Each file is a group if duplicates are dropped, since these are listed by file.
    """
    may_join = not config.compares_documents
    groups: list[list[FileInfo]] = []
    room = 0
    for file in files:
        size = file.bytes * (_UNPACKED if compression_of(file.path) else 1)
        if groups and may_join and size <= room and len(groups[-1]) < _MOST_FILES:
            groups[-1].append(file)
            room -= size
        else:
            groups.append([file])
            room = block_bytes - size
    return groups


def _plan_group(group: ReadGroup, block_bytes: int) -> Iterator[ReadGroup]:
    if len(group) > 1:
        yield group
    else:
        yield from ((task,) for task in plan_reading(group[0], block_bytes))


def _read_group(group: ReadGroup, block_bytes: int) -> Iterator[DocumentBlock]:
    if len(group) == 1:
        yield from read_blocks(group[0], block_bytes)
        return
    waiting: list[DocumentBlock] = []
    size = 0
    for task in group:
        for split in plan_reading(task, block_bytes):
            for block in read_blocks(split, block_bytes):
                if waiting and size + block.num_bytes > block_bytes:
                    yield join_blocks(waiting)
                    waiting = []
                    size = 0
                waiting.append(block)
                size += block.num_bytes
    if waiting:
        yield join_blocks(waiting)


def plan_reading(task: ReadTask, block_bytes: int) -> Iterator[ReadTask]:
    """Cut a file into tasks of whole documents, where its format and compression allow it."""
    location = task.location
    reader = task.reader.resolved(location)
    for split in reader.splits(location, block_bytes):
        report_progress(Progress.SPLITS, 1)
        yield dataclasses.replace(task, reader=reader, split=split)


def read_blocks(task: ReadTask, block_bytes: int) -> Iterator[DocumentBlock]:
    """Read the documents of a task in blocks, and report the progress.

    Args:
        task: the part of a file, and the rules.
        block_bytes: bytes of text from which a block is complete.

    Yields:
        Blocks in the order of the file; a document is never divided between two.
    """
    for raw in task.reader.read_split(task.location, task.split, block_bytes):
        raw = raw.renamed(task.path)
        block = make_block(raw, task.rules)
        report_progress(Progress.TEXT_BYTES, raw.texts.data.nbytes)
        yield block
    report_progress(Progress.SPLITS_READ, 1)


def read_new_blocks(
    group: ReadGroup, block_bytes: int, store: BlobStore
) -> Iterator[DocumentBlock | FinishedBlock]:
    """Read the blocks of a split or of small files, unless all their work is finished."""
    parts = "\0".join(f"{task.path}\0{task.split.index}" for task in group)
    reading = f"reading-{hashlib.sha256(parts.encode()).hexdigest()[:32]}"
    finished = store.finished(reading)
    if finished is not None:
        names = [str(name) for name, _ in finished]
        if all(store.finished(name) is not None for name in names):
            yield from map(FinishedBlock, names)
            report_progress(Progress.SPLITS_READ, 1)
            return
    names = []
    for block in _read_group(group, block_bytes):
        yield block
        names.append(block_work(block))
    for _ in store.once(reading, lambda writer: [(name, writer.add([])) for name in names]):
        pass

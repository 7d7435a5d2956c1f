"""The Beam transform every job begins with: from the corpus section to blocks of documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam

from bert_tf.config.sections.data import CorpusSection
from pipeline.corpus.block import DocumentBlock
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.files import FileInfo, match_files
from pipeline.corpus.formats import Reader, make_reader
from pipeline.corpus.splits import WHOLE_FILE, Split
from pipeline.progress import tell_progress


@dataclasses.dataclass(frozen=True)
class ReadTask:
    """What one worker reads at a time.

    Attributes:
        path: the file as it was given, by which rejects and duplicates are known.
        reader: the format's reader.
        split: which part of the file.
        rules: how what was read becomes documents.
        folder: what a relative path is relative to; a worker may run in another folder.
    """

    path: str
    reader: Reader
    split: Split = WHOLE_FILE
    rules: DocumentRules = dataclasses.field(default_factory=DocumentRules)
    folder: str = dataclasses.field(default_factory=lambda: str(Path.cwd()))

    @property
    def location(self) -> str:
        """The path to open in this process."""
        if "://" in self.path or str(Path.cwd()) == self.folder:
            return self.path
        return str(Path(self.folder) / self.path)


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
    """Cuts a file into tasks of whole documents, where its format and compression allow it."""
    location = task.location
    reader = task.reader.resolved(location)
    for split in reader.splits(location, block_bytes):
        yield dataclasses.replace(task, reader=reader, split=split)


def read_blocks(task: ReadTask, block_bytes: int) -> Iterator[DocumentBlock]:
    """Reads what the task names, a block at a time."""
    for raw in task.reader.read_split(task.location, task.split, block_bytes):
        raw = raw.renamed(task.path)
        block = make_block(raw, task.rules)
        tell_progress(raw.texts.data.nbytes)
        yield block

"""Which reader takes a file: by its name or as the configuration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bert_tf.config.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from pipeline.corpus.assemble import RawBlock
from pipeline.corpus.delimited import DelimitedReader
from pipeline.corpus.files import name_without_compression
from pipeline.corpus.jsonl import JsonlReader
from pipeline.corpus.pieces import Piece
from pipeline.corpus.text import TextReader


class Reader(Protocol):
    """What a format has to offer: where documents begin, and how bytes become documents.

    Readers are small and picklable: they travel to the workers with every piece to read.
    """

    def resolved(self, path: str) -> Reader:
        """With everything decided that depends on the file's whole content."""

    def find_last_border(self, data: bytes) -> int:
        """Offset of the last beginning of a document in `data`, 0 if there is none.

        `data` itself begins with a document.
        """

    def read(self, path: str, piece: Piece) -> RawBlock:
        """Reads whole documents; what cannot be read goes to the rejects."""


_READERS: dict[str, Callable[[str, CorpusSection], Reader]] = {
    "text": TextReader.for_file,
    "jsonl": JsonlReader.for_file,
    "csv": DelimitedReader.for_csv,
    "tsv": DelimitedReader.for_tsv,
}
_FORMAT_OF_SUFFIX = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}


def make_reader(path: str, config: CorpusSection) -> Reader:
    """The reader of a file.

    Raises:
        UsageError: the format is not known, or the file cannot have the documents asked for (for
            instance, it lacks the text column).
    """
    name = config.format if config.format != "auto" else _format_by_name(path)
    return _READERS[name](path, config)


def _format_by_name(path: str) -> str:
    name = name_without_compression(path)
    for suffix, format_name in _FORMAT_OF_SUFFIX.items():
        if name.endswith(suffix):
            return format_name
    raise UsageError(
        f"{path}: the file name does not tell the format; known endings are "
        f"{', '.join(_FORMAT_OF_SUFFIX)}, each also with .gz, .bz2 or .zst "
        "(or name the format: --set SECTION.format=text|jsonl|csv|tsv)"
    )

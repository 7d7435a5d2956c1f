"""Which reader takes a file: by its name or as the configuration says."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_names import COMPRESSIONS, name_without_compression
from pipeline.beam.folder_hint import FORMAT_OF_ENDING
from pipeline.corpus.blocks.raw_block import RawBlock
from pipeline.corpus.readers.delimited import DelimitedReader
from pipeline.corpus.readers.jsonl import JsonlReader
from pipeline.corpus.readers.mediawiki.dump import MediaWikiReader
from pipeline.corpus.readers.parquet import ParquetReader
from pipeline.corpus.readers.splits import ChunkReader, Split
from pipeline.corpus.readers.text import TextReader
from pipeline.corpus.readers.wikiextractor import format_of_wiki_file


class Reader(Protocol):
    """What a format has to offer: how a file is split, and how a split becomes texts.

    Readers are small and picklable: they travel to the workers with every split to read.
    """

    def resolved(self, path: str) -> Reader:
        """With everything decided that depends on the file's whole content."""

    def splits(self, path: str, block_bytes: int) -> Iterator[Split]:
        """Cuts a file into splits that workers read on their own."""

    def read_split(self, path: str, split: Split, block_bytes: int) -> Iterator[RawBlock]:
        """Reads the documents of a split; what cannot be read goes to the rejects."""

    def whole_size(self, path: str, stored_bytes: int) -> float:
        """How much there is in a file, about, without reading all of it.

        Args:
            path: the file.
            stored_bytes: its size.

        Returns:
            Bytes before compression, of a Parquet file those of the text column as encoded; where
            all blocks of a file are read, their `RawBlock.size` adds up to it.
        """


_READERS: dict[str, Callable[[str, CorpusSection], Reader]] = {
    "text": TextReader.for_file,
    "jsonl": JsonlReader.for_file,
    "csv": DelimitedReader.for_csv,
    "tsv": DelimitedReader.for_tsv,
    "parquet": ParquetReader.for_file,
    "mediawiki": MediaWikiReader.for_file,
}
_PART_OF_DUMP = re.compile(r"-p\d+p\d+$")  # enwiki-…-pages-articles1.xml-p1p41242


def make_reader(
    path: str, config: CorpusSection, layouts: Mapping[str, str] = MappingProxyType({})
) -> Reader:
    """The reader of a file.

    Args:
        path: the file.
        config: how the corpus is read.
        layouts: of files of plain text whose layout is known already.

    Raises:
        UsageError: the format is not known, or the file cannot have the documents asked for (for
            instance, it lacks the text column).
    """
    reader = _READERS[format_of(path, config)](path, config)
    if isinstance(reader, TextReader):
        reader = dataclasses.replace(reader, layout=layouts.get(path, reader.layout))
    if isinstance(reader, ChunkReader):
        largest = int(config.max_document_megabytes * 1e6)
        dialect = TableDialect.of(config)
        return dataclasses.replace(reader, largest_document=largest, dialect=dialect)
    return reader


def format_of(path: str, config: CorpusSection) -> str:
    """The format of a file, one of `CORPUS_FORMATS` other than auto.

    Raises:
        UsageError: neither its name says it nor the configuration, and it is not WikiExtractor's.
    """
    if config.format == "auto":
        return _format_of_file(path, config.section_name)
    return config.format


def _format_of_file(path: str, section: str) -> str:
    name = _PART_OF_DUMP.sub("", name_without_compression(path))
    for suffix, format_name in FORMAT_OF_ENDING.items():
        if name.endswith(suffix):
            return format_name
    wiki_format = format_of_wiki_file(path)
    if wiki_format:
        return wiki_format
    raise UsageError(
        f"{path}: the file name does not say the format; known endings are "
        f"{', '.join(FORMAT_OF_ENDING)}, all but .parquet also with {', '.join(COMPRESSIONS)}; "
        f"leave it out by a glob such as '*.txt', or say what all files are: "
        f"--set {section}.format={'|'.join(_READERS)}"
    )

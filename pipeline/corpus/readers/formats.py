"""The reader of each file, by its name or the config, and the layouts of plain text."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.dialect import (
    COMPRESSIONS,
    TableDialect,
    compression_of,
    name_without_compression,
    spreadsheet_advice,
)
from bert_tf.data.tables.header_hints import format_advice
from pipeline.beam.files import FileInfo
from pipeline.beam.globs import FORMAT_OF_ENDING
from pipeline.corpus.layout.detection import TextLook, decide_layouts
from pipeline.corpus.layout.sketch import Sketch
from pipeline.corpus.raw_block import RawBlock
from pipeline.corpus.readers.delimited import DelimitedReader
from pipeline.corpus.readers.html_pages import HtmlReader
from pipeline.corpus.readers.jsonl import JsonlReader
from pipeline.corpus.readers.mediawiki import MediaWikiReader
from pipeline.corpus.readers.parquet import ParquetReader
from pipeline.corpus.readers.splits import ChunkReader, Split
from pipeline.corpus.readers.text import HEAD_BYTES, TextReader
from pipeline.corpus.readers.warc import WarcReader
from pipeline.corpus.readers.wikiextractor import format_of_wiki_file

_READERS: dict[str, Callable[[str, CorpusSection], Reader]] = {
    "text": TextReader.for_file,
    "jsonl": JsonlReader.for_file,
    "csv": functools.partial(DelimitedReader.for_file, has_quotes=True),
    "tsv": functools.partial(DelimitedReader.for_file, has_quotes=False),
    "parquet": ParquetReader.for_file,
    "mediawiki": MediaWikiReader.for_file,
    "html": HtmlReader.for_file,
    "warc": WarcReader.for_file,
}
_PART_OF_DUMP = re.compile(r"-p\d+p\d+$")  # enwiki-…-pages-articles1.xml-p1p41242
# Bytes of English text in a stored byte.
TEXT_PER_STORED_BYTE = {None: 1.0, "gzip": 3.0, "bz2": 4.0, "zstd": 3.5}
# Text files whose beginnings are read at first, their bytes altogether, and of each at least.
_MOST_FILES = 64
_MOST_BYTES = 16_000_000
_LEAST_HEAD_BYTES = 1 << 16


class Reader(Protocol):
    """Splits a file of a format, and reads the texts of a split; picklable, for workers."""

    def resolved(self, path: str, *, is_sample: bool = False) -> Reader:
        """Decide everything that depends on the file's content.

        Args:
            is_sample: whether only the beginning is wanted, so that the rest is not read.
        """

    def splits(self, path: str, block_bytes: int) -> Iterator[Split]:
        """Cut a file into splits that workers read on their own."""

    def read_split(self, path: str, split: Split, block_bytes: int) -> Iterator[RawBlock]:
        """Read the documents of a split; unreadable ones become rejects."""

    def whole_size(self, path: str, stored_bytes: int) -> float:
        """Estimate uncompressed bytes (Parquet: of its texts), the sum of `RawBlock.size`."""


def make_reader(
    path: str, config: CorpusSection, layouts: Mapping[str, str] = MappingProxyType({})
) -> Reader:
    """Create the reader of a file.

    Args:
        path: the file.
        config: format, text column and limits.
        layouts: known layouts of plain text files, by path.

    Raises:
        UsageError: the format is not known, or the file lacks, for instance, the column.
    """
    reader = _READERS[format_of(path, config)](path, config)
    if isinstance(reader, TextReader):
        reader = dataclasses.replace(reader, layout=layouts.get(path, reader.layout))
    if isinstance(reader, ChunkReader):
        largest = int(config.max_document_megabytes * 1e6)
        dialect = TableDialect.of(config)
        return dataclasses.replace(reader, largest_document=largest, dialect=dialect)
    return reader


def read_file(
    path: str,
    config: CorpusSection,
    layouts: Mapping[str, str],
    block_bytes: int,
    *,
    is_sample: bool = False,
) -> Iterator[RawBlock]:
    """Yield a file's blocks of about `block_bytes`; see `make_reader` and `Reader.resolved`."""
    reader = make_reader(path, config, layouts).resolved(path, is_sample=is_sample)
    for split in reader.splits(path, block_bytes):
        yield from reader.read_split(path, split, block_bytes)


def format_of(path: str, config: CorpusSection) -> str:
    """Return the format of a file, one of `CORPUS_FORMATS` other than auto.

    Raises:
        UsageError: neither name, configuration nor content (WikiExtractor's) tells it.
    """
    if config.format != "auto":
        return config.format
    name = _PART_OF_DUMP.sub("", name_without_compression(path))
    for suffix, format_name in FORMAT_OF_ENDING.items():
        if name.endswith(suffix):
            return format_name
    wiki_format = format_of_wiki_file(path)
    if wiki_format:
        return wiki_format
    advice = spreadsheet_advice(path)
    if advice is not None:
        raise UsageError(advice)
    guess = format_advice(path, may_be_prose=True)
    choice = f"--set {config.section_name}.format={'|'.join(_READERS)}"
    or_choose = f", or name the format of all files: {choice}" if config.section_name else ""
    raise UsageError(
        f"{path}: the file name does not say the format; known endings are "
        f"{', '.join(FORMAT_OF_ENDING)}, all but .parquet also with {', '.join(COMPRESSIONS)}; "
        f"leave it out by a glob such as '*.txt'{or_choose}{guess and f' ({guess})'}"
    )


def look_at_text(config: CorpusSection, files: Sequence[FileInfo]) -> TextLook:
    """Find the layouts of text files from their beginnings.

    A few files spread over the corpus are read, and all if the layouts of these differ.
    """
    texts = [file for file in files if format_of(file.path, config) == "text"]
    places = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _MOST_FILES)).round())
    chosen = [texts[int(place)] for place in places]
    sketches, heads = _look_at_files(config, chosen)
    if config.text_layout != "auto":
        layouts = dict.fromkeys((file.path for file in texts), config.text_layout)
    else:
        layouts = decide_layouts(sketches, len(texts))
        if len(texts) > len(chosen):
            if len(set(layouts.values())) > 1:
                sketches, _ = _look_at_files(config, texts)
                layouts = decide_layouts(sketches, len(texts))
            else:
                (layout,) = set(layouts.values())
                layouts = dict.fromkeys((file.path for file in texts), layout)
    is_whole = len(sketches) == len(texts) and all(
        sketch.text_bytes == sketch.file_bytes for sketch in sketches.values()
    )
    return TextLook(layouts=layouts, sketches=sketches, heads=heads, is_whole=is_whole)


def _look_at_files(
    config: CorpusSection, files: Sequence[FileInfo]
) -> tuple[dict[str, Sketch], dict[str, bytes]]:
    """Return sketches and beginnings of text files, by path."""
    share = _MOST_BYTES // max(len(files), 1)
    head_bytes = min(max(share, _LEAST_HEAD_BYTES), HEAD_BYTES)
    sketches: dict[str, Sketch] = {}
    heads: dict[str, bytes] = {}
    for file in files:
        reader = make_reader(file.path, config)
        assert isinstance(reader, TextReader)
        head, sketch = reader.look(file.path, head_bytes)
        if len(head) == head_bytes:
            whole = int(file.bytes * TEXT_PER_STORED_BYTE[compression_of(file.path)])
            sketch = dataclasses.replace(sketch, file_bytes=max(sketch.text_bytes + 1, whole))
        sketches[file.path] = sketch
        heads[file.path] = head
    return sketches, heads

"""A sample of a corpus of limited size, and an estimate of the text of the whole.

The sample takes the beginnings of files that are spread evenly over the corpus: files of one source
are often neighbors, so the first files would all be of one kind. A file that needs less than its
share leaves the rest to the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bert_tf.base.wording import quantity, shown_size
from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import FileInfo
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.raw_block import RawBlock
from pipeline.corpus.readers.formats import look_at_text, make_reader, read_file

MOST_BYTES = 32_000_000  # of text of a sample
_MOST_FILES = 64
_BLOCK_BYTES = 2_000_000  # of text of a block, at most and at least
_LEAST_BLOCK_BYTES = 64_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampledFile:
    """A file of a sample.

    Attributes:
        file: path and stored size.
        text_bytes: of the text that was read.
        size: bytes that were read, counted like the reader's `whole_size`.
        is_whole: whether all of it was read.
    """

    file: FileInfo
    text_bytes: int
    size: float
    is_whole: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusSample:
    """A part of a corpus.

    Attributes:
        raw: blocks as they were read.
        blocks: the same cleaned, without limits and curation.
        is_whole: whether the sample is all of the corpus.
        note: names the part, for the reader of a page.
        files: that were read, with the size of the part of each.
    """

    raw: Sequence[RawBlock]
    blocks: Sequence[DocumentBlock]
    is_whole: bool
    note: str
    files: Sequence[SampledFile] = ()


def read_sample(
    config: CorpusSection,
    files: Sequence[FileInfo],
    *,
    most_bytes: int = MOST_BYTES,
    layouts: Mapping[str, str] | None = None,
) -> CorpusSample:
    """Read a small corpus whole, or the beginnings of files spread over a large one.

    Args:
        config: of `vocab` or `preprocess`.
        files: of the corpus.
        most_bytes: of text; a few more are possible, since documents are read whole.
        layouts: of plain text files by path; found here if None.

    Returns:
        The sample, at least one block of it if there is any text.

    Raises:
        UsageError: a file does not fit the config.
        InputError: a file is damaged.
    """
    places = np.linspace(0, len(files) - 1, min(len(files), _MOST_FILES)).round().astype(int)
    chosen = [files[place] for place in np.unique(places)]
    rules = DocumentRules.from_config(config)
    rules = dataclasses.replace(rules, limits={}, curation=())
    if layouts is None:
        layouts = look_at_text(config, files).layouts
    raw: list[RawBlock] = []
    sampled: list[SampledFile] = []
    left = most_bytes
    is_whole = len(chosen) == len(files)
    for number, file in enumerate(chosen):
        if left <= 0:  # documents are read whole, however long
            is_whole = False
            break
        share = left // (len(chosen) - number)
        size = min(_BLOCK_BYTES, max(share, _LEAST_BLOCK_BYTES))
        first_blocks, is_read = _first_blocks(
            read_file(file.path, config, layouts, size, is_sample=True), share
        )
        raw += first_blocks
        left -= sum(block.texts.data.nbytes for block in first_blocks)
        is_whole &= is_read
        texts = [block.texts for block in first_blocks]
        sampled.append(
            SampledFile(
                file=file,
                text_bytes=sum(int((part.stops - part.starts).sum()) for part in texts),
                size=sum(block.size for block in first_blocks),
                is_whole=is_read,
            )
        )
    read = shown_size(most_bytes - left)
    if is_whole:
        note = f"All of it: {read} of text in {quantity(len(files), 'file')}."
    else:
        note = (
            f"A sample: {read} of text, from the beginnings of {len(sampled):,} of "
            f"{quantity(len(files), 'file')} spread over the corpus "
            f"({shown_size(sum(file.bytes for file in files))} as stored). Copies outside of it "
            "are not found."
        )
    blocks = [make_block(block, rules) for block in raw]
    return CorpusSample(raw=raw, blocks=blocks, is_whole=is_whole, note=note, files=sampled)


def _first_blocks(blocks: Iterator[RawBlock], share: int) -> tuple[list[RawBlock], bool]:
    """Return at least one block, and whether these are all."""
    first_blocks: list[RawBlock] = []
    done = 0
    for block in blocks:
        if first_blocks and done >= share:
            return first_blocks, False
        first_blocks.append(block)
        done += block.texts.data.nbytes
    return first_blocks, True


def text_scale(config: CorpusSection, sample: CorpusSample, files: Sequence[FileInfo]) -> float:
    """Estimate the text of a corpus as a multiple of that of a sample, 1 or more.

    Extrapolates by bytes before compression inside a file (for Parquet, of the text column), and by
    stored bytes to files that were not read.
    """
    read = sum(sampled.text_bytes for sampled in sample.files)
    total = sum(_text_bytes(config, sampled) for sampled in sample.files)
    stored = sum(sampled.file.bytes for sampled in sample.files)
    total *= sum(file.bytes for file in files) / max(stored, 1)
    return max(total / max(read, 1), 1.0)


def _text_bytes(config: CorpusSection, sampled: SampledFile) -> float:
    """Estimate the bytes of text of a file from the part of it that was read."""
    if sampled.is_whole or not sampled.size:
        return sampled.text_bytes
    path = sampled.file.path
    reader = make_reader(path, config).resolved(path, is_sample=True)
    return sampled.text_bytes * reader.whole_size(path, sampled.file.bytes) / sampled.size

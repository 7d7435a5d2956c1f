"""How much text a corpus has, by a sample of it."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import FileInfo
from pipeline.corpus.readers.formats import make_reader
from pipeline.report.corpus.sample import CorpusSample, SampledFile


def text_scale(config: CorpusSection, sample: CorpusSample, files: Sequence[FileInfo]) -> float:
    """The text of a corpus over that of a sample.

    A file that was read in part has as much text for each byte before compression as that part (of
    a Parquet file each byte of the text column, whose sizes are in its metadata); files that were
    not read have as much for each stored byte as the others.

    Args:
        config: how the files are read.
        sample: read with it.
        files: of the corpus.

    Returns:
        1 or more.
    """
    read = sum(each.text_bytes for each in sample.files)
    total = sum(_text_bytes(config, each) for each in sample.files)
    stored = sum(each.file.bytes for each in sample.files)
    total *= sum(file.bytes for file in files) / max(stored, 1)
    return max(total / max(read, 1), 1.0)


def _text_bytes(config: CorpusSection, sampled: SampledFile) -> float:
    if sampled.is_whole or not sampled.size:
        return sampled.text_bytes
    path = sampled.file.path
    reader = make_reader(path, config).resolved(path)
    return sampled.text_bytes * reader.whole_size(path, sampled.file.bytes) / sampled.size

"""What every reader of a corpus does, whatever its format."""

from __future__ import annotations

import bz2
import codecs
import dataclasses
import gzip
from collections import Counter
from pathlib import Path
from typing import Any

from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.corpus.read import ReadTask, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader

WHOLE = 1 << 20


@dataclasses.dataclass(frozen=True)
class Reading:
    """What was made of a file.

    Attributes:
        documents: their sentences.
        rejects: (line, reason, detail) of each.
        dropped: how many documents and lines were left out, by reason.
        splits: (offset, length) of the parts that the file was cut into.
        blocks: what the reader yielded.
    """

    documents: list[list[str]]
    rejects: list[tuple[int, str, str]]
    dropped: dict[str, int]
    splits: list[tuple[int, int]]
    blocks: list[Any]

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """(line, reason) of each reject."""
        return [(line, reason) for line, reason, _ in self.rejects]


def read_corpus(path: str | Path, block_bytes: int = WHOLE, **values: Any) -> Reading:
    """Reads a file as a job does: cut into splits, a block at a time.

    Args:
        path: the file.
        block_bytes: of a block, and of a split.
        values: config keys of the corpus.
    """
    config = build_section(VocabConfig, {"input": (str(path),), "output": "y", **values})
    tasks = list(plan_reading(ReadTask(str(path), make_reader(str(path), config)), block_bytes))
    blocks = [block for task in tasks for block in read_blocks(task, block_bytes)]
    documents, rejects, dropped = [], [], Counter[str]()
    for block in blocks:
        sentences, bounds = block.sentences.to_pylist(), block.document_offsets.tolist()
        documents += [sentences[bounds[n] : bounds[n + 1]] for n in range(block.num_documents)]
        rejects += [(row.line, row.reason, row.detail) for row in block.rejects]
        dropped.update(block.dropped)
    splits = [(task.split.offset, task.split.length) for task in tasks]
    return Reading(documents, rejects, dict(dropped), splits, blocks)


def check_reader(folder: Path, name: str, content: bytes, **values: Any) -> Reading:
    """Checks what does not depend on a format; returns what the file gives.

    Documents, rejects with their lines and reasons, and counts are the same whatever the size of
    blocks, compressed or not, with and without a byte order mark, and with the line ends of
    Windows.

    Args:
        folder: where files may be written.
        name: of the file, by whose ending the format is known.
        content: of the file.
        values: config keys of the corpus.
    """
    (folder / name).write_bytes(content)
    expected = read_corpus(folder / name, **values)
    variants = {"": [content], ".gz": [gzip.compress(content)], ".bz2": [bz2.compress(content)]}
    if not content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        variants[""].append(codecs.BOM_UTF8 + content)
        if b"\r" not in content:
            variants[""].append(content.replace(b"\n", b"\r\n"))
    for suffix, contents in variants.items():
        for number, variant in enumerate(contents):
            path = folder / f"{number}-{name}{suffix}"
            path.write_bytes(variant)
            for block_bytes in (1, 9, WHOLE):
                read = read_corpus(path, block_bytes, **values)
                known_as = (path.name, variant[:20], block_bytes)
                assert read.documents == expected.documents, known_as
                assert read.reasons == expected.reasons, known_as
                # Details may quote a line, with the end it has in the file.
                assert variant != content or read.rejects == expected.rejects, known_as
                assert read.dropped == expected.dropped, known_as
    return expected

"""Behavior of every reader of a corpus and of labeled rows."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import dataclasses
import functools
import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bert_tf.base.errors import InputError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from bert_tf.data.tables.dialect import PLAIN, TableDialect, table_format_by_name
from bert_tf.data.tables.tables import read_table
from pipeline.corpus.read import ReadTask, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader

WHOLE = 1 << 20
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}
Rows = tuple[dict[int, str], list[tuple[int, str]]]
"""Texts by line, and (line, reason) of rejects."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """The documents and rejects of a file.

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
    """Read a file as a job does: cut into splits, a block at a time.

    Args:
        path: the file.
        block_bytes: of a block, and of a split.
        values: config keys of the corpus.
    """
    config = build_section(VocabConfig, {"input": (str(path),), "output": "y", **values})
    tasks = list(plan_reading(ReadTask(str(path), make_reader(str(path), config)), block_bytes))
    blocks = [block for task in tasks for block in read_blocks(task, block_bytes)]
    documents = []
    rejects = []
    dropped = Counter[str]()
    for block in blocks:
        sentences, bounds = block.sentences.to_pylist(), block.document_offsets.tolist()
        documents += [sentences[bounds[n] : bounds[n + 1]] for n in range(block.num_documents)]
        rejects += [(row.line, row.reason, row.detail) for row in block.evidence.rejects]
        dropped.update(block.evidence.dropped)
    splits = [(task.split.offset, task.split.length) for task in tasks]
    return Reading(documents, rejects, dict(dropped), splits, blocks)


def raw_texts(path: str | Path, block_bytes: int = WHOLE, **values: Any) -> dict[int, str]:
    """The texts that a corpus reader finds in a file before they are cleaned, by line; those that
    are not UTF-8 are left out."""
    config = build_section(VocabConfig, {"input": (str(path),), "output": "y", **values})
    found = {}
    for task in plan_reading(ReadTask(str(path), make_reader(str(path), config)), block_bytes):
        for block in task.reader.read_split(str(path), task.split, block_bytes):
            texts = block.texts
            for line, start, stop in zip(texts.lines, texts.starts, texts.stops, strict=True):
                with contextlib.suppress(UnicodeDecodeError):
                    found[int(line)] = texts.data[start:stop].tobytes().decode("utf-8")
    return found


def check_same_rows(
    path: Path, read_rows: Callable[[Path], Rows], block_bytes: int = WHOLE, **values: Any
) -> Rows:
    """Check that a reader of labeled rows finds the texts that a corpus reader finds in the file.

    Texts, their lines and rejects with their reasons are the same, but that a row without text,
    which a corpus drops, is rejected.

    Args:
        path: a table with a column of texts.
        read_rows: texts by line, and (line, reason) of rejects; an InputError without any row.
        block_bytes: of a block of the corpus.
        values: config keys of the corpus.
    """
    texts = raw_texts(path, block_bytes, **values)
    rejects = read_corpus(path, block_bytes, **values).reasons
    kept = {line: text for line, text in texts.items() if text.strip()}
    empty = f"column {values.get('text_column', 'text')!r} is empty"
    expected = sorted(rejects + [(line, empty) for line in texts.keys() - kept.keys()])
    if not kept:
        with pytest.raises(InputError):
            read_rows(path)
        return kept, expected
    assert read_rows(path) == (kept, expected), path.name
    return kept, expected


def read_labeled(path: Path, dialect: TableDialect = PLAIN, text_column: str = "text") -> Rows:
    """Texts by line, and (line, reason) of rejects, as `finetune` reads them."""
    table = read_table(path, dialect=dialect, text_columns=[text_column])
    rejects = [(reject.line, reject.reason) for reject in table.rejects]
    return dict(zip(table.lines, table.columns[text_column], strict=True)), rejects


def check_reader(folder: Path, name: str, content: bytes, **values: Any) -> Reading:
    """Check the behavior that all formats share, and return the content of the file.

    Documents, rejects with their lines and reasons, and counts are the same whatever the size of
    blocks, compressed or not, with and without a byte order mark, and with the line ends of
    Windows (the last three of text, not of Parquet). A table has the same rows if it is read as
    labeled rows.

    Args:
        folder: where files may be written.
        name: of the file, by whose ending the format is known.
        content: of the file.
        values: config keys of the corpus.
    """
    (folder / name).write_bytes(content)
    expected = read_corpus(folder / name, **values)
    paths = {"input": (name,), "output": "y"}
    is_table = table_format_by_name(name) is not None
    column = values.get("text_column", "text")
    is_text = table_format_by_name(name) != "parquet"
    variants = {ending: [compress(content)] for ending, compress in COMPRESS.items()}
    if not is_text:
        variants = {"": [content]}
    elif not content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        if "encoding" not in values:
            variants[""].append(codecs.BOM_UTF8 + content)
        if b"\r" not in content:
            variants[""].append(content.replace(b"\n", b"\r\n"))
    for suffix, contents in variants.items():
        for number, variant in enumerate(contents):
            path = folder / f"{number}-{name}{suffix}"
            path.write_bytes(variant)
            if is_table:
                dialect = TableDialect.of(build_section(VocabConfig, {**paths, **values}))
                read_rows = functools.partial(read_labeled, dialect=dialect, text_column=column)
                check_same_rows(path, read_rows, **values)
            for block_bytes in (1, 9, WHOLE):
                read = read_corpus(path, block_bytes, **values)
                known_as = (path.name, variant[:20], block_bytes)
                assert read.documents == expected.documents, known_as
                assert read.reasons == expected.reasons, known_as
                # Details may quote a line, with the end it has in the file.
                assert variant != content or read.rejects == expected.rejects, known_as
                assert read.dropped == expected.dropped, known_as
    return expected

"""Texts of the files of `exclude`: cells of tables, strings of SQuAD JSON, paragraphs of text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf.base.errors import InputError, NoRowsError, UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.dialect import PLAIN, table_format_by_name
from bert_tf.data.tables.formats.squad_json import is_squad_json, read_squad_entries
from bert_tf.data.tables.rejects import Reject, RejectTally
from bert_tf.data.tables.tables import read_table_blocks
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import FileInfo, match_files
from pipeline.beam.storage import open_stored
from pipeline.beam.stored_path import path_of
from pipeline.corpus.curation.exclusion import ExcludedTexts, Exclusion
from pipeline.corpus.curation.personal_data import PersonalData
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.duplicates.folding import fold_texts
from pipeline.corpus.evidence import Evidence
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.readers.formats import look_at_text, read_file

_ENTRIES = 8192  # questions of a SQuAD file in a block
_BLOCK_BYTES = 16_000_000  # of text in a block
_Rows = tuple[Iterable[tuple[int, Any]], list[Reject]]


def match_excluded(config: CorpusSection, files: Sequence[FileInfo]) -> list[FileInfo]:
    """Find the files of `exclude`.

    Args:
        config: patterns of the files.
        files: of the corpus.

    Raises:
        UsageError: a pattern matches no file, or one that is also a file of the corpus.
    """
    corpus = {path_of(file.path).resolve() for file in files} if config.exclude else set()
    by_path: dict[str, FileInfo] = {}
    for pattern in config.exclude:
        for file in match_files([pattern]):
            by_path[file.path] = file
            if path_of(file.path).resolve() in corpus:
                raise UsageError(
                    f"--exclude {pattern}: {file.path} is also a file of --input, and all of it "
                    "would be left out; change one of the two"
                )
    return [by_path[path] for path in sorted(by_path)]


def store_excluded(
    config: CorpusSection, files: Sequence[FileInfo], store: BlobStore
) -> tuple[Exclusion | None, list[str]]:
    """Make the texts available to workers.

    Args:
        config: steps of cleaning, and the action on documents that share text.
        files: as `match_excluded` found them.
        store: that all workers see.

    Returns:
        The exclusion that workers apply, None without files; and warnings about rows that cannot
        be read.

    Raises:
        InputError: see `read_excluded`.
    """
    if not files:
        return None, []
    texts, warnings = read_excluded(config, files)
    return Exclusion.of_texts(texts, store, cuts=config.exclude_action == "cut"), warnings


def read_excluded(
    config: CorpusSection, files: Sequence[FileInfo]
) -> tuple[ExcludedTexts, list[str]]:
    """Read all texts.

    Args:
        config: steps of cleaning, the same as for the corpus.
        files: tables, SQuAD JSON or text.

    Returns:
        The texts, and warnings about rows that cannot be read.

    Raises:
        InputError: a file has no text, or as the readers do.
    """
    parts: list[tuple[np.ndarray, ...]] = []
    warnings = []
    for number, file in enumerate(files):
        rejects = RejectTally()
        num_words = 0
        for block, bounds in read_texts(file, config):
            rejects.add(block.evidence.rejects)
            folded = fold_texts(block.sentences, with_symbols=False)
            lengths = np.diff(folded.offsets[bounds])
            documents = np.searchsorted(block.document_offsets, bounds[:-1], side="right") - 1
            lines = block.document_lines[documents]
            parts.append((folded.words, lengths, lines, np.full(len(lines), number)))
            num_words += len(folded.words)
        if rejects.total:
            warnings.append(f"--exclude {file.path}: not read, so not excluded: {rejects.brief()}")
        if not num_words:
            raise InputError(f"--exclude {file.path}: has no text; give a file of texts to exclude")
    words, lengths, lines, numbers = map(np.concatenate, zip(*parts, strict=True))
    paths = [file.path for file in files]
    return ExcludedTexts.of_words(words, lengths, lines, numbers, paths), warnings


def read_texts(file: FileInfo, config: CorpusSection) -> Iterator[tuple[DocumentBlock, np.ndarray]]:
    """Yield texts, cleaned like the corpus, and the sentences at which each begins and ends.

    Boilerplate is not removed: a file of texts to exclude has none, but it may have short lines
    that look like it.

    Args:
        file: a table, SQuAD JSON or text.
        config: steps of cleaning.

    Yields:
        A block, and int64 [texts + 1], offsets into its sentences.
    """
    rules = DocumentRules(
        cleaning=tuple(step for step in config.cleaning if step != "boilerplate"),
        personal_data=PersonalData.from_config(config),
    )
    is_table = table_format_by_name(file.path) is not None
    raw_blocks = _read_table(file.path) if is_table else _read_text(file)
    for raw in raw_blocks:
        block = make_block(raw, rules)
        yield block, block.document_offsets if is_table else block.line_offsets


def _read_text(file: FileInfo) -> Iterator[RawBlock]:
    """Read the paragraphs of a file of text."""
    config = CorpusSection(input=(file.path,))
    layouts = look_at_text(config, [file]).layouts
    return read_file(file.path, config, layouts, _BLOCK_BYTES)


def _read_table(path: str) -> Iterator[RawBlock]:
    """Read the texts in all cells of a table."""
    blocks = _squad_rows(path) if is_squad_json(path, open_stored) else _rows(path)
    for rows, rejects in blocks:
        texts = [(line, text) for line, value in rows for text in _strings(value)]
        data = [text.encode("utf-8", "surrogatepass") for _, text in texts]
        texts_of_rows = Texts.of_rows(data, [line for line, _ in texts])
        yield RawBlock(
            source=path, index=0, texts=texts_of_rows, evidence=Evidence(rejects=rejects)
        )


def _squad_rows(path: str) -> Iterator[_Rows]:
    """Yield lines with questions and their contexts, each context once, and rejects."""
    entries = read_squad_entries(path, PLAIN, open_stored)
    while True:
        taken = list(itertools.islice(entries, _ENTRIES))
        if not taken:
            return
        rejects: list[Reject] = []
        rows: list[tuple[int, Any]] = []
        before = None
        for line, context, question, fault in taken:
            if fault:
                rejects.append(Reject(path, line, *fault))
            else:  # questions on one context follow each other
                rows.append((line, question if context is before else (context, question)))
            before = context
        yield rows, rejects


def _rows(path: str) -> Iterator[_Rows]:
    """Yield lines with rows of a table, and rejects."""
    try:
        for number, block in enumerate(read_table_blocks(path, opener=open_stored)):
            if number == 0 and block.header is not None:  # a row, where the file has no header
                yield [(block.header.line, block.header.columns)], []
            yield zip(block.lines, block.rows, strict=True), block.rejects
    except NoRowsError as error:
        if error.header is None or not (error.header.raw or "").strip():
            raise
        yield [(error.header.line, error.header.columns)], []


def _strings(value: Any) -> Iterator[str]:
    """Yield all texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)

"""From texts as a reader found them to documents of clean sentences."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.config.sections.data import DEFAULT_CLEANING, CorpusSection
from bert_tf.data.tables.rejects import Reject
from pipeline.corpus.blocks.byte_ranges import gather, split_lines
from pipeline.corpus.blocks.document_block import DocumentBlock, add_reason
from pipeline.corpus.blocks.raw_block import (
    ONE_DOCUMENT,
    PARAGRAPH_LINES,
    SENTENCE_LINES,
    RawBlock,
    Texts,
)
from pipeline.corpus.cleaning.boilerplate import BOILERPLATE_LINE, find_boilerplate
from pipeline.corpus.cleaning.filters import NO_LIMITS, DocumentLimits, keep_fit_documents
from pipeline.corpus.cleaning.lines import CleanLines, clean_lines, compose, find_blank_lines
from pipeline.corpus.cleaning.markup import MARKUP_LINE, strip_markup
from pipeline.corpus.cleaning.paragraphs import paragraph_bounds
from pipeline.corpus.sentences.splitters import SentenceSplitter, make_splitter

EMPTY_DOCUMENT = "empty document"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentRules:
    """How texts become documents; sent to the workers with every split to read.

    Attributes:
        cleaning: the steps that are switched on (see `CorpusSection.cleaning`).
        splitter: finds the sentences of a paragraph; None leaves lines as they are.
        limits: documents outside them are dropped.
    """

    cleaning: tuple[str, ...] = DEFAULT_CLEANING
    splitter: SentenceSplitter | None = dataclasses.field(
        default_factory=lambda: make_splitter("rules", "en")
    )
    limits: DocumentLimits = NO_LIMITS

    @classmethod
    def from_config(cls, config: CorpusSection) -> DocumentRules:
        """The rules the configuration asks for.

        Raises:
            UsageError: the sentence splitter is not installed or does not know the language.
        """
        return cls(
            cleaning=config.cleaning,
            splitter=make_splitter(config.sentence_splitter, config.sentence_language),
            limits=DocumentLimits(
                min_characters=config.min_document_characters,
                min_words=config.min_document_words,
                min_letter_fraction=config.min_letter_fraction,
            ),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Lines:
    """Clean lines of documents.

    Attributes:
        clean: the lines; those left out are empty.
        line_documents: int64 [lines], not falling: the number of each line's document.
        document_lines: int64 [documents]: where each begins in the file.
        rejects, dropped, dropped_lines: as of `DocumentBlock`.
    """

    clean: CleanLines
    line_documents: np.ndarray
    document_lines: np.ndarray
    rejects: list[Reject]
    dropped: dict[str, int]
    dropped_lines: dict[str, int]


def make_block(raw: RawBlock, rules: DocumentRules) -> DocumentBlock:
    """Cleans texts, splits them into sentences and drops the documents outside the limits."""
    if raw.layout in (SENTENCE_LINES, PARAGRAPH_LINES):
        lines = _clean_lines_of_documents(raw, rules)
    elif raw.layout == ONE_DOCUMENT:
        lines = _clean_one_document(raw, rules)
    else:
        lines = _clean_documents(raw, rules)
    if "boilerplate" in rules.cleaning:
        lines = _without_boilerplate(lines)
    splitter = None if raw.layout == SENTENCE_LINES else rules.splitter
    return keep_fit_documents(_split(raw, lines, splitter, rules), rules.limits)


def _clean_lines_of_documents(raw: RawBlock, rules: DocumentRules) -> _Lines:
    texts, dropped_lines = raw.texts, {}
    is_border = None
    if "html" in rules.cleaning:
        is_border = find_blank_lines(texts.data, texts.starts, texts.stops)
        texts = strip_markup(texts, paragraph_end=b" ")
    clean = clean_lines(texts.data, texts.starts, texts.stops, rules.cleaning)
    is_faulty = clean.fault_positions >= 0
    is_blank = (clean.lengths == 0) & ~is_faulty
    if is_border is None:
        is_border = is_blank
    else:
        dropped_lines = add_reason({}, MARKUP_LINE, int((is_blank & ~is_border).sum()))
    is_inside = ~is_border & ~is_faulty
    # Groups of lines between borders that hold a line are the documents.
    groups = np.cumsum(is_border)
    numbers, first_lines = np.unique(groups[is_inside], return_index=True)
    return _Lines(
        clean=clean.select(np.flatnonzero(is_inside)),
        line_documents=np.searchsorted(numbers, groups[is_inside]),
        document_lines=texts.lines[is_inside][first_lines],
        rejects=[*raw.rejects, *_utf8_rejects(raw, texts, clean)],
        dropped=raw.dropped,
        dropped_lines=dropped_lines,
    )


def _clean_one_document(raw: RawBlock, rules: DocumentRules) -> _Lines:
    texts = raw.texts
    clean = clean_lines(texts.data, texts.starts, texts.stops, rules.cleaning)
    rejects = [*raw.rejects, *_utf8_rejects(raw, texts, clean)]
    first_line = texts.lines[:1] if len(texts.lines) else np.ones(1, np.int64)
    if "html" in rules.cleaning:  # markup continues over line ends
        sound = clean.fault_positions < 0
        joined = "\n".join(gather(texts.data, texts.starts[sound], texts.stops[sound]).to_pylist())
        whole = Texts(
            data=np.frombuffer(joined.encode("utf-8"), np.uint8),
            starts=np.zeros(1, np.int64),
            stops=np.full(1, len(joined.encode("utf-8")), np.int64),
            lines=first_line,
        )
        lines = _clean_documents(dataclasses.replace(raw, texts=whole, rejects=[]), rules)
        return dataclasses.replace(lines, rejects=rejects)
    return _Lines(
        clean=clean,
        line_documents=np.zeros(len(texts.starts), np.int64),
        document_lines=first_line,
        rejects=rejects,
        dropped=raw.dropped,
        dropped_lines={},
    )


def _clean_documents(raw: RawBlock, rules: DocumentRules) -> _Lines:
    texts = raw.texts
    if "html" in rules.cleaning:
        texts = strip_markup(texts, paragraph_end=b"\n")
    starts, stops, text_of_line = split_lines(texts.data, texts.starts, texts.stops)
    clean = clean_lines(texts.data, starts, stops, rules.cleaning)
    is_faulty = clean.fault_positions >= 0
    rejects = raw.rejects
    document_lines = texts.lines
    if is_faulty.any():
        faulty_lines = np.flatnonzero(is_faulty)
        faulty, first_faults = np.unique(text_of_line[faulty_lines], return_index=True)
        first_lines = faulty_lines[first_faults]
        positions = clean.fault_positions[first_lines] + starts[first_lines] - texts.starts[faulty]
        found = [
            _utf8_reject(raw, line, position)
            for line, position in zip(texts.lines[faulty].tolist(), positions.tolist(), strict=True)
        ]
        rejects = sorted(rejects + found, key=lambda reject: reject.line)
        is_sound = np.ones(len(texts.starts), np.bool_)
        is_sound[faulty] = False
        kept = np.flatnonzero(is_sound[text_of_line])
        clean = clean.select(kept)
        text_of_line = (np.cumsum(is_sound) - 1)[text_of_line[kept]]
        document_lines = texts.lines[is_sound]
    return _Lines(
        clean=clean,
        line_documents=text_of_line,
        document_lines=document_lines,
        rejects=rejects,
        dropped=raw.dropped,
        dropped_lines={},
    )


def _without_boilerplate(lines: _Lines) -> _Lines:
    found = find_boilerplate(lines.clean)
    return dataclasses.replace(
        lines,
        clean=lines.clean.without(found),
        dropped_lines=add_reason(lines.dropped_lines, BOILERPLATE_LINE, int(found.sum())),
    )


def _split(
    raw: RawBlock, lines: _Lines, splitter: SentenceSplitter | None, rules: DocumentRules
) -> DocumentBlock:
    clean = lines.clean
    if splitter is None:
        has_text = clean.lengths > 0
        starts, stops = clean.offsets[:-1][has_text], clean.offsets[1:][has_text] - 1
        documents = lines.line_documents[has_text]
        counts = np.ones(len(starts), np.int64)
    else:
        starts, stops, documents = paragraph_bounds(clean.data, clean.offsets, lines.line_documents)
        starts, stops, counts = splitter.split(clean.data, starts, stops)
    numbers, sentence_counts = _counts_by_document(documents, counts)
    sentences = gather(clean.data, starts, stops)
    if "nfc" in rules.cleaning and clean.may_need_composition:
        sentences = compose(sentences)
    empty = len(lines.document_lines) - len(numbers)
    return DocumentBlock(
        source=raw.source,
        index=raw.index,
        sentences=sentences,
        document_offsets=offsets_of(sentence_counts),
        line_offsets=offsets_of(counts),
        document_lines=lines.document_lines[numbers],
        rejects=lines.rejects,
        dropped=add_reason(lines.dropped, EMPTY_DOCUMENT, empty),
        dropped_lines=lines.dropped_lines,
    )


def _counts_by_document(documents: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Documents that have paragraphs, and their sentences, from those of each paragraph."""
    numbers, first_paragraphs = np.unique(documents, return_index=True)
    if not len(numbers):
        return numbers, np.zeros(0, np.int64)
    return numbers, np.add.reduceat(counts, first_paragraphs)


def _utf8_rejects(raw: RawBlock, lines: Texts, clean: CleanLines) -> list[Reject]:
    return [
        _utf8_reject(raw, int(lines.lines[line]), int(clean.fault_positions[line]))
        for line in np.flatnonzero(clean.fault_positions >= 0)
    ]


def _utf8_reject(raw: RawBlock, line: int, position: int) -> Reject:
    return Reject(raw.source, line, raw.invalid_text, f"at byte {position + 1}")

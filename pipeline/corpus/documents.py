"""Turn raw texts into documents of clean sentences within the limits."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.config.sections.data import DEFAULT_CLEANING, CorpusSection
from bert_tf.data.tables.rejects import Reject
from pipeline.corpus.characters import code_point_table, decode
from pipeline.corpus.curation.exclusion import Exclusion
from pipeline.corpus.curation.measures import DocumentLines
from pipeline.corpus.curation.personal_data import PersonalData
from pipeline.corpus.curation.registry import rules_of
from pipeline.corpus.curation.rule import Rule, curate
from pipeline.corpus.document_block import DocumentBlock, offsets_and_data
from pipeline.corpus.evidence import DOCUMENTS_READ, Evidence
from pipeline.corpus.layout.east_asian import remove_breaks
from pipeline.corpus.layout.paragraphs import find_double_spacing, paragraph_bounds
from pipeline.corpus.lines import CleanLines, clean_lines, compose, find_blank_lines, find_rules
from pipeline.corpus.raw_block import (
    DOCUMENTS,
    ONE_DOCUMENT,
    PARAGRAPH_LINES,
    SENTENCE_LINES,
    RawBlock,
    Texts,
    gather,
    split_lines,
)
from pipeline.corpus.sentences import SentenceSplitter, make_splitter, split_sentences
from pipeline.corpus.web_pages import BOILERPLATE_LINE, MARKUP_LINE, find_boilerplate, strip_markup

EMPTY_DOCUMENT = "empty document"
DRAWN_LINE = "drawn line"
TOO_FEW_CHARACTERS = "too few characters"
TOO_FEW_WORDS = "too few words"
TOO_FEW_LETTERS = "too few letters"
# Config keys of the minimum sizes: characters of the sentences, inner spaces included; words that
# white space separates; letters and their marks among the other characters. 0 is no limit.
LIMIT_KEYS = {
    TOO_FEW_CHARACTERS: "min_document_characters",
    TOO_FEW_WORDS: "min_document_words",
    TOO_FEW_LETTERS: "min_letter_fraction",
}
_OTHER = 0
_LETTER = 1
_WHITE = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentRules:
    """Settings by which texts become documents; sent to the workers with every split to read."""

    cleaning: tuple[str, ...] = DEFAULT_CLEANING  # enabled steps (see `CorpusSection.cleaning`)
    # Finds the sentences of a paragraph; None leaves lines as they are.
    splitter: SentenceSplitter | None = split_sentences
    # The smallest documents that are kept, by the reason to drop others.
    limits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    curation: tuple[Rule, ...] = ()  # in the order of the registry
    personal_data: PersonalData = dataclasses.field(default_factory=PersonalData)
    exclusion: Exclusion | None = None

    @classmethod
    def from_config(
        cls, config: CorpusSection, exclusion: Exclusion | None = None
    ) -> DocumentRules:
        """Read the rules; raise UsageError for a missing sentence splitter or unknown rules."""
        minimums = {reason: getattr(config, key) for reason, key in LIMIT_KEYS.items()}
        return cls(
            curation=rules_of(config),
            personal_data=PersonalData.from_config(config),
            exclusion=exclusion,
            cleaning=config.cleaning,
            splitter=make_splitter(config.sentence_splitter, config.sentence_language),
            limits={reason: least for reason, least in minimums.items() if least},
        )


def make_block(raw: RawBlock, rules: DocumentRules) -> DocumentBlock:
    """Clean texts, apply curation, split sentences, exclude texts and apply the limits."""
    lines = clean_raw(raw, rules)
    documents = raw.texts.starts if raw.layout == DOCUMENTS else lines.document_lines
    evidence = lines.evidence + Evidence(tallies={DOCUMENTS_READ: len(documents)})
    lines = dataclasses.replace(lines, evidence=evidence)
    if rules.curation:
        lines = curate(raw.source, lines, rules.curation, rules.personal_data)
    splitter = None if raw.layout == SENTENCE_LINES else rules.splitter
    block = _split(raw, lines, splitter, rules)
    if rules.exclusion is not None:
        block = rules.exclusion.apply(block)
    # A document is counted under the first limit that drops it.
    for reason, least in rules.limits.items():
        sizes = measure_documents(block)[reason]
        block = block.drop_documents(sizes < least, reason, sizes)
    return block


def clean_raw(raw: RawBlock, rules: DocumentRules) -> DocumentLines:
    """Clean texts; lines of boilerplate are empty."""
    if raw.layout in (SENTENCE_LINES, PARAGRAPH_LINES):
        lines = _clean_lines_of_documents(raw, rules)
    elif raw.layout == ONE_DOCUMENT:
        lines = _clean_one_document(raw, rules)
    else:
        lines = _clean_documents(raw, rules)
    if "boilerplate" in rules.cleaning:
        is_boilerplate = find_boilerplate(lines.clean)
        evidence = lines.evidence + Evidence(
            dropped_lines={BOILERPLATE_LINE: int(is_boilerplate.sum())}
        )
        lines = dataclasses.replace(
            lines, clean=lines.clean.without(is_boilerplate), evidence=evidence
        )
    if rules.splitter is not None and raw.layout not in (SENTENCE_LINES, PARAGRAPH_LINES):
        lines = _without_drawn_lines(lines)
    if rules.curation and rules.splitter is not None and raw.layout != SENTENCE_LINES:
        return _with_joined_lines(lines)
    return lines


def _without_drawn_lines(lines: DocumentLines) -> DocumentLines:
    """Empty lines of drawn marks, and take out blank lines between double-spaced ones."""
    clean = lines.clean
    is_drawn = find_rules(clean.data, clean.offsets[:-1], clean.offsets[1:] - 1)
    clean = clean.without(is_drawn)
    evidence = lines.evidence + Evidence(dropped_lines={DRAWN_LINE: int(is_drawn.sum())})
    is_between = find_double_spacing(clean.data, clean.offsets, lines.line_documents)
    line_documents = lines.line_documents
    if is_between.any():
        kept = np.flatnonzero(~is_between)
        clean = clean.select(kept)
        line_documents = line_documents[kept]
    return dataclasses.replace(lines, clean=clean, line_documents=line_documents, evidence=evidence)


def _with_joined_lines(lines: DocumentLines) -> DocumentLines:
    """Join hard-wrapped lines, which rules of lines judge as paragraphs; blank lines stay."""
    clean = lines.clean
    starts, stops, _ = paragraph_bounds(
        clean.data, clean.offsets, lines.line_documents, columns=clean.columns
    )
    breaks = _inner_breaks(clean, starts, stops)
    first_lines = np.searchsorted(clean.offsets, starts)
    lengths = clean.lengths
    kept = lengths == 0
    kept[first_lines] = True
    lengths[first_lines] = stops - starts
    starts = clean.offsets[:-1][kept]
    data, starts, stops = remove_breaks(clean.data, breaks, starts, starts + lengths[kept])
    return dataclasses.replace(
        lines,
        clean=dataclasses.replace(clean, data=data).take(starts, stops - starts, kept),
        line_documents=lines.line_documents[kept],
    )


def _inner_breaks(clean: CleanLines, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return the spaces after lines, int64, that are inside the paragraphs of these bounds."""
    breaks = clean.offsets[1:-1] - 1
    paragraphs = np.searchsorted(stops, breaks, side="right")  # the first that stops behind it
    return breaks[np.append(starts, len(clean.data))[paragraphs] < breaks]


def _clean_lines_of_documents(raw: RawBlock, rules: DocumentRules) -> DocumentLines:
    """Clean texts that are lines, with blank lines between documents."""
    texts = raw.texts
    is_border = None
    if "html" in rules.cleaning:
        is_border = find_blank_lines(texts.data, texts.starts, texts.stops)
        texts = strip_markup(texts, paragraph_end=b" ")
    clean = clean_lines(texts.data, texts.starts, texts.stops, rules.cleaning)
    is_faulty = clean.fault_positions >= 0
    is_blank = (clean.lengths == 0) & ~is_faulty
    if is_border is None:
        is_border = is_blank
    markup = Evidence(dropped_lines={MARKUP_LINE: int((is_blank & ~is_border).sum())})
    is_inside = ~is_border & ~is_faulty
    # Groups of lines between borders that hold a line are the documents.
    groups = np.cumsum(is_border)
    numbers, first_lines = np.unique(groups[is_inside], return_index=True)
    return DocumentLines(
        clean=clean.select(np.flatnonzero(is_inside)),
        line_documents=np.searchsorted(numbers, groups[is_inside]),
        document_lines=texts.lines[is_inside][first_lines],
        evidence=_with_faults(raw, texts, clean) + markup,
    )


def _clean_one_document(raw: RawBlock, rules: DocumentRules) -> DocumentLines:
    """Clean texts that are the lines of one document."""
    texts = raw.texts
    clean = clean_lines(texts.data, texts.starts, texts.stops, rules.cleaning, has_columns=True)
    evidence = _with_faults(raw, texts, clean)
    first_line = texts.lines[:1] if len(texts.lines) else np.ones(1, np.int64)
    if "html" in rules.cleaning:  # markup continues over line ends
        sound = np.flatnonzero(clean.fault_positions < 0)
        ranges = zip(texts.starts[sound], texts.stops[sound], strict=True)
        joined = b"\n".join(texts.data[start:stop].tobytes() for start, stop in ranges)
        whole = Texts.of_rows([joined], first_line.tolist())
        lines = _clean_documents(dataclasses.replace(raw, texts=whole), rules)
        return dataclasses.replace(lines, evidence=evidence)
    return DocumentLines(
        clean=clean,
        line_documents=np.zeros(len(texts.starts), np.int64),
        document_lines=first_line,
        evidence=evidence,
    )


def _clean_documents(raw: RawBlock, rules: DocumentRules) -> DocumentLines:
    """Clean texts that are a document each; one with bytes that are not UTF-8 is a reject."""
    texts = raw.texts
    if "html" in rules.cleaning:
        texts = strip_markup(texts, paragraph_end=b"\n")
    starts, stops, text_of_line = split_lines(texts.data, texts.starts, texts.stops)
    has_columns = "html" not in rules.cleaning  # white space means nothing in HTML
    clean = clean_lines(
        texts.data,
        starts,
        stops,
        rules.cleaning,
        has_columns=has_columns,
        text_of_line=text_of_line,
    )
    is_faulty = clean.fault_positions >= 0
    evidence = raw.evidence
    document_lines = texts.lines
    if is_faulty.any():
        faulty_lines = np.flatnonzero(is_faulty)
        faulty, first_faults = np.unique(text_of_line[faulty_lines], return_index=True)
        first_lines = faulty_lines[first_faults]
        positions = clean.fault_positions[first_lines] + starts[first_lines] - texts.starts[faulty]
        evidence = _with_rejects(raw, texts.lines[faulty], positions)
        is_sound = np.ones(len(texts.starts), np.bool_)
        is_sound[faulty] = False
        kept = np.flatnonzero(is_sound[text_of_line])
        clean = clean.select(kept)
        text_of_line = (np.cumsum(is_sound) - 1)[text_of_line[kept]]
        document_lines = texts.lines[is_sound]
    return DocumentLines(
        clean=clean, line_documents=text_of_line, document_lines=document_lines, evidence=evidence
    )


def _split(
    raw: RawBlock, lines: DocumentLines, splitter: SentenceSplitter | None, rules: DocumentRules
) -> DocumentBlock:
    """Join lines to paragraphs, replace personal data, and split sentences.

    Args:
        raw: the texts.
        lines: their clean lines.
        splitter: None if lines are sentences.
        rules: with the cleaning and the personal data.
    """
    clean = lines.clean
    starts, stops, documents = paragraph_bounds(
        clean.data, clean.offsets, lines.line_documents, splitter is not None, clean.columns
    )
    breaks = _inner_breaks(clean, starts, stops)
    data, starts, stops = remove_breaks(clean.data, breaks, starts, stops)
    # Replaced before sentences are split, since splitting would cut values, and before documents
    # are compared, since their text and hash are stored.
    data, starts, stops, replaced = rules.personal_data.replace(data, starts, stops)
    counts = np.ones(len(starts), np.int64)
    if splitter is not None:
        starts, stops, counts = splitter(data, starts, stops)
    numbers, first_paragraphs = np.unique(documents, return_index=True)
    sentence_counts = np.add.reduceat(counts, first_paragraphs) if len(numbers) else counts
    sentences = gather(data, starts, stops)
    if "nfc" in rules.cleaning and clean.may_need_composition:
        sentences = compose(sentences)
    empty = np.delete(lines.document_lines, numbers)
    return DocumentBlock(
        source=raw.source,
        index=raw.index,
        sentences=sentences,
        document_offsets=offsets_of(sentence_counts),
        line_offsets=offsets_of(counts),
        document_lines=lines.document_lines[numbers],
        evidence=lines.evidence
        + Evidence.of_dropped(raw.source, empty, EMPTY_DOCUMENT)
        + Evidence(replaced=replaced),
    )


def _with_faults(raw: RawBlock, lines: Texts, clean: CleanLines) -> Evidence:
    """Add the lines that are not UTF-8 to the rejects of a block."""
    is_faulty = clean.fault_positions >= 0
    return _with_rejects(raw, lines.lines[is_faulty], clean.fault_positions[is_faulty])


def _with_rejects(raw: RawBlock, lines: np.ndarray, positions: np.ndarray) -> Evidence:
    """Add texts to the rejects of a block.

    Args:
        raw: the block.
        lines: int64 [texts], the line of each text.
        positions: int64 [texts], the byte from which each is not UTF-8, from 0.
    """
    rejects = [*raw.evidence.rejects]
    for line, position in zip(lines.tolist(), positions.tolist(), strict=True):
        rejects.append(Reject(raw.source, line, raw.invalid_text, f"at byte {position + 1}"))
    rejects.sort(key=lambda reject: reject.line)
    return dataclasses.replace(raw.evidence, rejects=rejects)


def measure_documents(block: DocumentBlock) -> dict[str, np.ndarray]:
    """Return the sizes that have limits, [documents] each, by the reason to drop a document."""
    offsets, data = offsets_and_data(block.sentences)
    characters, words, letters, visible = _measure(
        data, offsets, block.document_offsets, _letter_table()
    )
    return {
        TOO_FEW_CHARACTERS: characters,
        TOO_FEW_WORDS: words,
        TOO_FEW_LETTERS: letters / np.maximum(visible, 1),
    }


@functools.cache
def _letter_table() -> np.ndarray:
    """Return the class of each code point, _OTHER, _LETTER or _WHITE; uint8 [NUM_CODE_POINTS]."""

    def kind_of(character: str, category: str) -> int:
        if character.isspace():
            return _WHITE
        return _LETTER if category[0] in "LM" else _OTHER

    return code_point_table(kind_of, _OTHER)


@numba.njit(cache=True, nogil=True)
def _measure(data, offsets, document_offsets, table):
    """Count the characters, words, letters and visible characters of documents.

    Args:
        data: uint8, UTF-8 of all sentences.
        offsets: [sentences + 1] into the data.
        document_offsets: [documents + 1] into the sentences.
        table: of `_letter_table`.

    Returns:
        int64 [4, documents].
    """
    sizes = np.empty((4, len(document_offsets) - 1), np.int64)
    for document in range(sizes.shape[1]):
        characters = words = letters = visible = 0
        for sentence in range(document_offsets[document], document_offsets[document + 1]):
            position, stop = offsets[sentence], offsets[sentence + 1]
            in_word = False
            while position < stop:
                code_point, width = decode(data, position)
                kind = table[code_point]
                characters += 1
                letters += kind == _LETTER
                visible += kind != _WHITE
                words += kind != _WHITE and not in_word
                in_word = kind != _WHITE
                position += width
        sizes[:, document] = (characters, words, letters, visible)
    return sizes

"""The sentences of documents, by their characters in the untouched texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.base.arrays import offsets_of
from pipeline.corpus.characters import BLANK, REMOVE, cleaning_table
from pipeline.corpus.lines import paragraph_bounds
from pipeline.corpus.sentences import SentenceSplitter

_LINE_ENDS = np.array([ord(mark) for mark in "\n\r\v\f\x85\u2028\u2029"], np.uint32)
_RETURN, _NEWLINE, _SPACE = ord("\r"), ord("\n"), ord(" ")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentSentences:
    """Sentences in the order of documents.

    Attributes:
        starts, ends: int64 [sentences], characters (code points) of their document, ends exclusive.
        counts: int64 [documents], sentences of each.
    """

    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class _CleanText:
    """Lines of all documents with single spaces, as the sentence splitter takes them.

    Attributes:
        data: uint8, UTF-8; each line followed by a space.
        byte_starts: int64 [characters + 1], where each character begins in `data`.
        characters: int64 [characters], the place of each in the documents laid end to end.
        lines: int64 [lines + 1], the character that each line begins with.
    """

    data: np.ndarray
    byte_starts: np.ndarray
    characters: np.ndarray
    lines: np.ndarray


def find_sentences(texts: Sequence[str], splitter: SentenceSplitter | None) -> DocumentSentences:
    """Splits documents into sentences as corpora are.

    A line end is the end of a paragraph, unless the document is hard-wrapped (see
    `paragraph_bounds`); an empty line always is. Runs of white space and control characters count
    as one space.

    Args:
        texts: of the documents.
        splitter: of paragraphs; None takes each line as a sentence.
    """
    clean = _cleaned(texts)
    document_starts = offsets_of(np.array([len(text) + 1 for text in texts], np.int64))[:-1]
    line_starts = clean.characters[clean.lines[:-1]]
    line_documents = np.searchsorted(document_starts, line_starts, side="right") - 1
    offsets = clean.byte_starts[clean.lines]
    if splitter is None:
        has_text = np.diff(offsets) > 1
        starts, stops = offsets[:-1][has_text], offsets[1:][has_text] - 1
        documents = line_documents[has_text]
    else:
        starts, stops, documents = paragraph_bounds(clean.data, offsets, line_documents)
        starts, stops, counts = splitter.split(clean.data, starts, stops)
        documents = np.repeat(documents, counts)
    first = clean.characters[np.searchsorted(clean.byte_starts, starts)]
    last = clean.characters[np.searchsorted(clean.byte_starts, stops) - 1]
    return DocumentSentences(
        starts=first - document_starts[documents],
        ends=last + 1 - document_starts[documents],
        counts=np.bincount(documents, minlength=len(texts)),
    )


def _cleaned(texts: Sequence[str]) -> _CleanText:
    whole = "".join(f"{text}\n" for text in texts)
    codes = np.frombuffer(whole.encode("utf-32-le"), "<u4")
    kinds = cleaning_table()[codes]
    places = np.flatnonzero(kinds != REMOVE)
    codes, is_blank = codes[places], kinds[places] == BLANK
    is_end = np.isin(codes, _LINE_ENDS)
    is_end[1:] &= ~((codes[1:] == _NEWLINE) & (codes[:-1] == _RETURN))

    begins_run = is_blank.copy()
    begins_run[1:] &= ~is_blank[:-1]
    runs = np.flatnonzero(begins_run)
    run_of = np.cumsum(begins_run) - 1
    ends = np.bincount(run_of[is_end], minlength=len(runs))
    # Of a run of blanks one stays, and a second one as an empty line; none where the text begins.
    is_kept = ~is_blank
    ends_line = np.zeros(len(codes), bool)
    is_inner = runs > 0
    is_kept[runs[is_inner]] = True
    ends_line[runs[is_inner & (ends > 0)]] = True
    empty_lines = runs[is_inner & (ends > 1)] + 1
    is_kept[empty_lines] = ends_line[empty_lines] = True

    kept = np.where(is_blank, np.uint32(_SPACE), codes)[is_kept].astype("<u4")
    widths = 1 + (kept >= 0x80).astype(np.int64) + (kept >= 0x800) + (kept >= 0x10000)
    line_ends = np.flatnonzero(ends_line[is_kept])
    data = kept.tobytes().decode("utf-32-le").encode()
    return _CleanText(
        data=np.frombuffer(data, np.uint8),
        byte_starts=offsets_of(widths),
        characters=places[is_kept],
        lines=np.concatenate([np.zeros(1, np.int64), line_ends + 1]),
    )

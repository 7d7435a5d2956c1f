"""The text of a block as curation rules see it, and the measurements that several rules share."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import combine_keys
from pipeline.corpus.curation.language import Languages, identify
from pipeline.corpus.curation.personal_data import PersonalData, find_suspects
from pipeline.corpus.curation.words import Words, find_words
from pipeline.corpus.document_block import hash_ranges, offsets_and_data
from pipeline.corpus.evidence import Evidence
from pipeline.corpus.lines import CleanLines, compose
from pipeline.corpus.raw_block import gather

_SHOWN_LINES = 8  # of a sample
# Bytes of personal data by characters of the word that replaces it, at most.
_MOST_SHRINKING = 300


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredText:
    """Documents as lines, none of them blank.

    The text of a document is its lines, each preceded by its line feeds. A measurement is computed
    when the first rule needs it. Those of documents are float64 [documents].

    Attributes:
        data: uint8, UTF-8 in composed form.
        starts, stops: int64 [lines], bytes of each.
        feeds: int64 [lines], line feeds before the line; set to 0 for the first of a document.
        documents: int64 [lines], the document of each line, rising.
    """

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    feeds: np.ndarray
    documents: np.ndarray
    num_documents: int

    def __post_init__(self) -> None:
        self.feeds[np.unique(self.documents, return_index=True)[1]] = 0

    def select(self, lines: np.ndarray, *, keeps_feeds: bool = False) -> MeasuredText:
        """Keep some lines, and the languages of documents.

        Args:
            lines: bool [lines].
            keeps_feeds: whether line feeds stay as they are; else there is one between lines, as C4
                leaves.
        """
        documents = self.documents[lines]
        selected = dataclasses.replace(
            self,
            starts=self.starts[lines],
            stops=self.stops[lines],
            feeds=self.feeds[lines] if keeps_feeds else np.ones(len(documents), np.int64),
            documents=documents,
        )
        # Languages take long to identify, and they are those of the document as it was read.
        languages = vars(self).get("document_languages")
        if languages is not None:
            vars(selected)["document_languages"] = languages
        return selected

    def total(self, of_lines: np.ndarray) -> np.ndarray:
        """Sum numbers of lines over each document, float64 [documents]."""
        return np.bincount(self.documents, of_lines, self.num_documents)

    def total_of_words(self, of_words: np.ndarray) -> np.ndarray:
        return self.total(np.diff(offsets_of(of_words)[self.words.line_offsets]))

    @cached_property
    def texts(self) -> pa.Array:
        """Return the lines, string [lines]."""
        return gather(self.data, self.starts, self.stops)

    @cached_property
    def line_characters(self) -> np.ndarray:
        """Return the characters of lines, int64 [lines]."""
        return pc.utf8_length(self.texts).to_numpy().astype(np.int64)

    @cached_property
    def document_bounds(self) -> np.ndarray:
        """Return where documents begin, int64 [documents + 1], offsets into the lines."""
        return np.searchsorted(self.documents, np.arange(self.num_documents + 1))

    def hashes(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Hash ranges of lines, uint64 [ranges], by their lines in any order."""
        mixed = combine_keys(self.line_hashes, np.uint64(0))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return sums[ends] - sums[begins]

    @cached_property
    def line_hashes(self) -> np.ndarray:
        """Return hashes of the bytes of lines, uint64 [lines]."""
        return hash_ranges(self.data, self.starts, self.stops)

    @cached_property
    def is_repeated_line(self) -> np.ndarray:
        """Return whether an equal line comes before it in its document, bool [lines]."""
        return find_repeats(self.documents, self.line_hashes)

    @cached_property
    def last_characters(self) -> np.ndarray:
        """Return the last code point of lines, uint32 [lines]."""
        _, data = offsets_and_data(pc.utf8_slice_codeunits(self.texts, -1))
        return np.frombuffer(data.tobytes().decode("utf-8").encode("utf-32-le"), np.uint32)

    @cached_property
    def num_lines(self) -> np.ndarray:
        return self.total(np.ones(len(self.documents)))

    @cached_property
    def num_feeds(self) -> np.ndarray:
        return self.total(self.feeds)

    @cached_property
    def num_characters(self) -> np.ndarray:
        """Return the characters of documents, line feeds included."""
        return self.total(self.line_characters + self.feeds)

    @cached_property
    def words(self) -> Words:
        return find_words(self.data, self.starts, self.stops)

    @cached_property
    def num_words(self) -> np.ndarray:
        return self.total(np.diff(self.words.line_offsets))

    @cached_property
    def document_words(self) -> np.ndarray:
        """Return where documents begin, int64 [documents + 1], offsets into the words."""
        return self.words.line_offsets[self.document_bounds]

    @cached_property
    def document_languages(self) -> Languages:
        return identify(self.data, self.starts, self.stops, self.feeds, self.document_bounds)

    def languages_of_lines(self, lines: np.ndarray) -> Languages:
        """Return the languages of some lines, bool [lines]."""
        starts, stops = self.starts[lines], self.stops[lines]
        return identify(self.data, starts, stops, self.feeds[lines], np.arange(len(starts) + 1))

    def shown(self, first: int, last: int, most: int, personal_data: PersonalData) -> str:
        """Return the beginning of some lines, without personal data.

        Args:
            first, last: the first line, and the one after the last.
            most: characters.
            personal_data: kinds to replace.
        """
        lines = slice(first, min(last, first + _SHOWN_LINES))
        starts = self.starts[lines]
        stops = self.stops[lines]
        ranges = zip(starts, stops, strict=True)
        text = b" ".join(self.data[start:stop].tobytes() for start, stop in ranges)
        # Replacing values makes the text shorter, so many more bytes than `most` are searched.
        excerpt = text[: _MOST_SHRINKING * most].decode("utf-8", "ignore")
        if personal_data.kinds and find_suspects(self.data, starts, stops).any():
            excerpt, _ = personal_data.replace_in(excerpt)
        return excerpt[:most]

    def begin_with(self, *texts: str) -> np.ndarray:
        """Return whether each line begins with one of the texts, bool [lines]."""
        return np.any([pc.starts_with(self.texts, text) for text in texts], axis=0)

    def end_with(self, *texts: str) -> np.ndarray:
        return np.any([pc.ends_with(self.texts, text) for text in texts], axis=0)

    def occurrences(self, phrase: str) -> np.ndarray:
        """Count how often each line has a phrase, int32 [lines]; capitals of ASCII count alike."""
        return pc.count_substring(self._lowered, phrase.lower()).to_numpy()

    @cached_property
    def _lowered(self) -> pa.Array:
        return pc.ascii_lower(self.texts)


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide elementwise; 0 where the whole is 0."""
    return part / np.maximum(whole, 1)


def find_repeats(documents: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Find items that equal one before them in their document.

    Args:
        documents: int [items].
        hashes: uint64 [items].

    Returns:
        bool [items].
    """
    order = np.lexsort((hashes, documents))  # stable: of equal ones the first comes first
    documents, hashes = documents[order], hashes[order]
    is_repeat = np.zeros(len(order), np.bool_)
    is_repeat[order[1:]] = (documents[1:] == documents[:-1]) & (hashes[1:] == hashes[:-1])
    return is_repeat


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentLines:
    """Clean lines of documents.

    Attributes:
        clean: the lines; those left out are empty.
        line_documents: int64 [lines], not falling: the document of each line.
        document_lines: int64 [documents], where each begins in the file.
    """

    clean: CleanLines
    line_documents: np.ndarray
    document_lines: np.ndarray
    evidence: Evidence

    @cached_property
    def measured(self) -> tuple[MeasuredText, np.ndarray]:
        """Return the text without blank lines, and the numbers of the others, int64 [lines]."""
        clean = self.clean
        lines = np.flatnonzero(clean.lengths)
        data = clean.data
        starts = clean.offsets[:-1][lines]
        stops = clean.offsets[1:][lines] - 1  # without the line end
        if clean.may_need_composition:
            offsets, data = offsets_and_data(compose(gather(data, starts, stops)))
            starts, stops = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
        text = MeasuredText(
            data=data,
            starts=starts,
            stops=stops,
            feeds=np.diff(lines, prepend=0),
            documents=self.line_documents[lines],
            num_documents=len(self.document_lines),
        )
        return text, lines

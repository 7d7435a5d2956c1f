"""The engine that summarizes documents: sentences, their vectors, the choice among them.

Summaries are extractive: they have sentences of the document, word for word. Sentences are chosen
by maximal marginal relevance (`select_sentences`): each should be near to the document as a whole,
and far from the sentences chosen before.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.embeddings.settings import EMBEDDING, TEXT_TOKENS, EmbedderSettings
from bert_tf.engines.engine import Engine
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS, LOST_TOKENS
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.similarity.metrics import normalized
from pipeline.corpus.characters import BLANK, REMOVE, cleaning_table
from pipeline.corpus.layout.paragraphs import paragraph_bounds
from pipeline.corpus.sentences import SentenceSplitter, make_splitter

_LINE_ENDS = np.array([ord(mark) for mark in "\n\r\v\f\x85\u2028\u2029"], np.uint32)
_RETURN = ord("\r")
_NEWLINE = ord("\n")
_SPACE = ord(" ")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentSentences:
    """The places of the sentences of documents.

    Attributes:
        starts, ends: int64 [sentences], characters (code points) of their document, ends exclusive.
        counts: int64 [documents], number of sentences of each.
    """

    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class _CleanText:
    """Documents without control characters and repeated blanks, with the place of each character.

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
    """Split documents into sentences, like a corpus; without a splitter, each line is a sentence.

    A line end is the end of a paragraph, unless the document is hard-wrapped (see
    `paragraph_bounds`); an empty line always is one. Blanks and control characters are collapsed
    first.

    Args:
        texts: documents.
        splitter: of paragraphs; None for lines.
    """
    clean = _cleaned(texts)
    document_starts = offsets_of(np.array([len(text) + 1 for text in texts], np.int64))[:-1]
    line_starts = clean.characters[clean.lines[:-1]]
    line_documents = np.searchsorted(document_starts, line_starts, side="right") - 1
    offsets = clean.byte_starts[clean.lines]
    starts, stops, documents = paragraph_bounds(
        clean.data, offsets, line_documents, splitter is not None
    )
    if splitter is not None:
        starts, stops, counts = splitter(clean.data, starts, stops)
        documents = np.repeat(documents, counts)
    # The splitter counts bytes of the clean text; the output counts characters of the document.
    first = clean.characters[np.searchsorted(clean.byte_starts, starts)]
    last = clean.characters[np.searchsorted(clean.byte_starts, stops) - 1]
    return DocumentSentences(
        starts=first - document_starts[documents],
        ends=last + 1 - document_starts[documents],
        counts=np.bincount(documents, minlength=len(texts)),
    )


def _cleaned(texts: Sequence[str]) -> _CleanText:
    """Collapse blanks, and note the place of each character."""
    whole = "".join(f"{text}\n" for text in texts)
    codes = np.frombuffer(whole.encode("utf-32-le"), "<u4")
    kinds = cleaning_table()[codes]
    places = np.flatnonzero(kinds != REMOVE)
    codes = codes[places]
    is_blank = kinds[places] == BLANK
    is_end = np.isin(codes, _LINE_ENDS)
    # A carriage return and a line feed are one line end.
    is_end[1:] &= ~((codes[1:] == _NEWLINE) & (codes[:-1] == _RETURN))

    begins_run = is_blank.copy()
    begins_run[1:] &= ~is_blank[:-1]
    runs = np.flatnonzero(begins_run)
    run_of = np.cumsum(begins_run) - 1
    ends = np.bincount(run_of[is_end], minlength=len(runs))
    # One blank of a run stays, and a second one as an empty line; none at the beginning of the
    # text.
    is_kept = ~is_blank
    ends_line = np.zeros(len(codes), bool)
    is_inner = runs > 0
    is_kept[runs[is_inner]] = True
    ends_line[runs[is_inner & (ends > 0)]] = True
    empty_lines = runs[is_inner & (ends > 1)] + 1
    is_kept[empty_lines] = True
    ends_line[empty_lines] = True

    kept = np.where(is_blank, np.uint32(_SPACE), codes)[is_kept].astype("<u4")
    # Bytes of each character in UTF-8.
    widths = 1 + (kept >= 0x80).astype(np.int64) + (kept >= 0x800) + (kept >= 0x10000)
    line_ends = np.flatnonzero(ends_line[is_kept])
    data = kept.tobytes().decode("utf-32-le").encode()
    return _CleanText(
        data=np.frombuffer(data, np.uint8),
        byte_starts=offsets_of(widths),
        characters=places[is_kept],
        lines=np.concatenate([np.zeros(1, np.int64), line_ends + 1]),
    )


def select_sentences(
    vectors: np.ndarray, count: int, *, mmr_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Choose sentences one at a time by MMR (Carbonell and Goldstein 1998).

    Each has the highest `lambda * cos(s, document) - (1 - lambda) * max cos(s, chosen)`. Scores are
    compared to 6 decimals, and ties are broken by the place. The document is the mean of its
    sentences' unit vectors, so that all of a long text counts.

    Args:
        vectors: float [sentences, hidden], at least one.
        count: number of sentences to choose.
        mmr_lambda: 1 for only relevance, lower for less redundancy.

    Returns:
        Their numbers in the order of choice, int64 [count]; and the cosine of every sentence with
        the document, float64 [sentences].
    """
    unit = normalized(vectors.astype(np.float64))
    relevance = unit @ normalized(unit.mean(axis=0))
    value = mmr_lambda * relevance
    redundancy = np.full(len(unit), -np.inf)
    is_left = np.ones(len(unit), bool)
    chosen = np.empty(min(count, len(unit)), np.int64)
    for place in range(len(chosen)):
        scores = value if place == 0 else value - (1 - mmr_lambda) * redundancy
        best = int(np.argmax(np.where(is_left, np.round(scores, _DIGITS), -np.inf)))
        chosen[place] = best
        is_left[best] = False
        np.maximum(redundancy, unit @ unit[best], out=redundancy)
    return chosen, relevance


SUMMARY = "summary"
SENTENCES = "summary_sentences"
FIELDS = (PredictionField(SUMMARY, "text"), PredictionField(SENTENCES, "json"))
# Decimals of scores, without the noise of rounding: two sentences are equally near to their mean.
_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizerSettings:
    """An `EngineLoader`; settings with different `name` make different summaries.

    Attributes:
        embedder: makes vectors of sentences.
        sentence_splitter, sentence_language: see `make_splitter`.
        sentences: of a summary, at most; None if `ratio` decides.
        ratio: of a document's sentences, rounded up; None if `sentences` decides.
        mmr_lambda: see `select_sentences`.
    """

    embedder: EmbedderSettings
    sentence_splitter: str
    sentence_language: str
    sentences: int | None
    ratio: float | None
    mmr_lambda: float

    @property
    def name(self) -> str:
        return f"summarizer {json.dumps(dataclasses.asdict(self))}"

    def reads(self, name: str) -> bool:
        return self.embedder.reads(name)

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        embedder = self.embedder.load(folder, threads=threads, is_checked=is_checked)
        return Summarizer(embedder, self)

    def count(self, sentences: int) -> int:
        """Return the number of sentences in the summary of a document of so many sentences."""
        if self.ratio is None:
            assert self.sentences is not None
            return min(self.sentences, sentences)
        return min(sentences, math.ceil(self.ratio * sentences))


class Summarizer:
    """Summarizes documents by the vectors of an embedder; an `Engine`."""

    def __init__(self, embedder: Engine, settings: SummarizerSettings):
        self.input_names: tuple[str, ...] = ("text",)
        self._embedder = embedder
        self._settings = settings
        self._splitter = make_splitter(settings.sentence_splitter, settings.sentence_language)

    def predict(
        self,
        columns: dict[str, list[Any]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """Return summaries of documents, [rows] each; see `Engine.predict`.

        `summary` has the chosen sentences in their order, with single spaces. `summary_sentences`
        is JSON: `start` and `end` (characters) of each, the `text` there, `score` (cosine with the
        document) and `rank` of choice. `lost_tokens`, int32, is the number of tokens that were cut
        off sentences.
        """
        texts = columns["text"]
        spans = find_sentences(texts, self._splitter)
        owners = np.repeat(np.arange(len(texts)), spans.counts).tolist()
        places = zip(owners, spans.starts.tolist(), spans.ends.tolist(), strict=True)
        sentences = [texts[owner][start:end] for owner, start, end in places]
        outputs = self._embedder.predict(
            {"text": [" ".join(sentence.split()) for sentence in sentences]},
            batch_tokens=batch_tokens,
            on_tokens=on_tokens,
        )
        lost = np.maximum(outputs[TEXT_TOKENS] - self._settings.embedder.max_seq_length, 0)
        bounds = offsets_of(spans.counts).tolist()
        summaries = np.empty(len(texts), object)
        details = np.empty(len(texts), object)
        for row, (begin, end) in enumerate(itertools.pairwise(bounds)):
            chosen = self._chosen(outputs[EMBEDDING][begin:end])
            entries = [
                {
                    "start": int(spans.starts[begin + number]),
                    "end": int(spans.ends[begin + number]),
                    "text": sentences[begin + number],
                    "score": round(score, _DIGITS),
                    "rank": rank,
                }
                for number, score, rank in chosen
            ]
            words = [word for entry in entries for word in str(entry["text"]).split()]
            summaries[row] = " ".join(words)
            details[row] = json.dumps(entries, ensure_ascii=False)
        if on_rows is not None:
            on_rows(len(texts))
        return {
            SUMMARY: summaries,
            SENTENCES: details,
            LOST_TOKENS: np.bincount(owners, weights=lost, minlength=len(texts)).astype(np.int32),
        }

    def _chosen(self, vectors: np.ndarray) -> list[tuple[int, float, int]]:
        """Return number, score and rank of the chosen sentences, in the order of the document."""
        if not len(vectors):
            return []
        numbers, relevance = select_sentences(
            vectors, self._settings.count(len(vectors)), mmr_lambda=self._settings.mmr_lambda
        )
        ranks = {number: rank for rank, number in enumerate(numbers.tolist(), start=1)}
        return [(number, float(relevance[number]), ranks[number]) for number in sorted(ranks)]

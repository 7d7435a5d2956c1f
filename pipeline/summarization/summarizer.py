"""The engine that summarizes documents: sentences, their vectors, the choice among them."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.embeddings.settings import EMBEDDING, TEXT_TOKENS, EmbedderSettings
from bert_tf.engines.engine import Engine
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS, LOST_TOKENS
from bert_tf.tasks.base.declaration import PredictionField
from pipeline.corpus.sentences import make_splitter
from pipeline.summarization.sentences import find_sentences

_SMALLEST_NORM = 1e-12
# two sentences are as similar to their mean, but for rounding


def select_sentences(
    vectors: np.ndarray, count: int, *, mmr_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Chooses sentences one at a time (Carbonell and Goldstein 1998, "The Use of MMR").

    Each has the highest `lambda * cos(s, document) - (1 - lambda) * max cos(s, chosen)`, of those
    equal to 6 decimals the first; nothing is subtracted for the first one. The document's vector is
    the mean of its sentences' unit vectors (their centroid), so that no part of a long text is left
    out.

    Args:
        vectors: float [sentences, hidden], at least one.
        count: sentences to choose, at most all.
        mmr_lambda: 1 takes the most similar ones, lower values spread over the document.

    Returns:
        Their numbers in the order of choice, int64 [count]; and the cosine of every sentence with
        the document, float64 [sentences].
    """
    unit = _normalized(vectors.astype(np.float64))
    relevance = unit @ _normalized(unit.mean(axis=0))
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


def _normalized(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, _SMALLEST_NORM)


SUMMARY, SENTENCES = "summary", "summary_sentences"
FIELDS = (PredictionField(SUMMARY, "text"), PredictionField(SENTENCES, "json"))
_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizerSettings:
    """How documents are summarized; an `EngineLoader`.

    Attributes:
        embedder: which vectors of sentences.
        sentence_splitter, sentence_language: see `make_splitter`.
        sentences: of a summary, at most; None where `ratio` decides.
        ratio: of a document's sentences, rounded up.
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
        """The settings; jobs of different names make different summaries."""
        return f"summarizer {json.dumps(dataclasses.asdict(self))}"

    def reads(self, name: str) -> bool:
        """Whether a file of a model's folder may decide the summaries."""
        return self.embedder.reads(name)

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """See `EngineLoader.load`."""
        embedder = self.embedder.load(folder, threads=threads, is_checked=is_checked)
        return Summarizer(embedder, self)

    def count(self, sentences: int) -> int:
        """How many of a document's sentences its summary has."""
        if self.ratio is None:
            assert self.sentences is not None
            return min(self.sentences, sentences)
        return min(sentences, math.ceil(self.ratio * sentences))


class Summarizer:
    """Documents to summaries; an `Engine`.

    Args:
        embedder: makes the vectors.
        settings: how documents are summarized.
    """

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
        """Summaries of documents; see `Engine.predict`.

        Returns:
            [rows] each: `summary`, the chosen sentences in their order, joined by spaces, each with
            single spaces; `summary_sentences`, JSON text: of each of them `start` and `end`,
            characters of the text as it is, `text` between them, `score`, its cosine with the
            document, and `rank`, its place in the order of choice; and `lost_tokens` int32, of
            sentences longer than the model takes.
        """
        texts = columns["text"]
        found = find_sentences(texts, self._splitter)
        owners = np.repeat(np.arange(len(texts)), found.counts).tolist()
        sentences = [
            texts[owner][start:end]
            for owner, start, end in zip(
                owners, found.starts.tolist(), found.ends.tolist(), strict=True
            )
        ]
        outputs = self._embedder.predict(
            {"text": [" ".join(sentence.split()) for sentence in sentences]},
            batch_tokens=batch_tokens,
            on_tokens=on_tokens,
        )
        lost = np.maximum(outputs[TEXT_TOKENS] - self._settings.embedder.max_seq_length, 0)
        bounds = offsets_of(found.counts).tolist()
        summaries, details = np.empty(len(texts), object), np.empty(len(texts), object)
        for row, (begin, end) in enumerate(itertools.pairwise(bounds)):
            chosen = self._chosen(outputs[EMBEDDING][begin:end])
            entries = [
                {
                    "start": int(found.starts[begin + number]),
                    "end": int(found.ends[begin + number]),
                    "text": sentences[begin + number],
                    "score": round(score, _DIGITS),
                    "rank": rank,
                }
                for number, score, rank in chosen
            ]
            summaries[row] = " ".join(" ".join(str(each["text"]).split()) for each in entries)
            details[row] = json.dumps(entries, ensure_ascii=False)
        if on_rows is not None:
            on_rows(len(texts))
        return {
            SUMMARY: summaries,
            SENTENCES: details,
            LOST_TOKENS: np.bincount(owners, weights=lost, minlength=len(texts)).astype(np.int32),
        }

    def _chosen(self, vectors: np.ndarray) -> list[tuple[int, float, int]]:
        """Number, score and rank of the chosen sentences of a document, in their order."""
        if not len(vectors):
            return []
        numbers, relevance = select_sentences(
            vectors, self._settings.count(len(vectors)), mmr_lambda=self._settings.mmr_lambda
        )
        ranks = {number: rank for rank, number in enumerate(numbers.tolist(), start=1)}
        return [(number, float(relevance[number]), ranks[number]) for number in sorted(ranks)]

"""Tags and entities from logits, in NumPy: for evaluation and for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.host_wordpiece import CharacterTokenizer, HostTokenizer
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.base.prediction_rows import json_values
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.schemes import OUTSIDE, Spans, code_tags, entity_spans
from bert_tf.tasks.tagging.words import NO_WORD, TextWords, WordRows, encode_words, first_words

_PROBABILITY_DIGITS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingHost(HostTask):
    """See `TaggingTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = TAGGING

    labels: tuple[str, ...]
    scheme: str
    window_stride: int

    def word_rows(self, tokenizer: CharacterTokenizer, texts: Sequence[str]) -> WordRows:
        return encode_words(
            tokenizer, texts, max_seq_length=self.max_seq_length, stride=self.window_stride
        )

    def encode(self, tokenizer: HostTokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        words = self.word_rows(tokenizer, columns["text"])
        return HostRows(sequences=words.rows, details=words)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The likeliest tag of each token, int32, and its probability, [n, max_seq_length]."""
        kept = outputs["logits"][:, : self.max_seq_length]
        shape = (len(kept), self.max_seq_length)
        above = kept - kept.max(axis=-1, keepdims=True)
        tags, probabilities = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        tags[:, : kept.shape[1]] = kept.argmax(axis=-1)
        probabilities[:, : kept.shape[1]] = 1.0 / np.exp(above).sum(axis=-1)
        return {"tags": tags, "probabilities": probabilities}

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        words: WordRows = rows.details
        place = words.windows, words.positions
        tags = np.array(self.labels, object)[reduced["tags"][place]].tolist()
        scores = reduced["probabilities"][place]
        return prediction_columns(columns["text"], words.words, tags, scores, self.scheme)


def prediction_columns(
    texts: Sequence[str],
    words: TextWords,
    tags: list[str],
    probabilities: np.ndarray,
    scheme: str,
) -> dict[str, Any]:
    """Writes entities, tags and the mean probability of each text.

    `tags` and `probabilities` are those of each of BERT's `words`.

    Returns:
        `predicted_entities`: of each text a list of objects with `start` and `end` (characters),
        `label`, `text` and `score`, the mean probability of the tags of its words.
        `predicted_tags`: of each text a list of objects with `start`, `end` and `tag`.
        `mean_score`: float32 [texts], the mean probability of its tags; 0 without words.
    """
    numbers: dict[str, int] = {}
    spans = entity_spans(code_tags(tags, scheme, numbers), words.offsets)
    sums = np.concatenate([[0.0], np.cumsum(probabilities, dtype=np.float64)])
    entities = _entities(texts, words, spans, list(numbers), sums)
    counts = np.diff(words.offsets)
    totals = sums[words.offsets[1:]] - sums[words.offsets[:-1]]
    listed = [
        {"start": start, "end": end, "tag": tag}
        for start, end, tag in zip(words.starts.tolist(), words.ends.tolist(), tags, strict=True)
    ]
    bounds = words.offsets.tolist()
    return {
        "predicted_entities": entities,
        "predicted_tags": [listed[begin:end] for begin, end in itertools.pairwise(bounds)],
        "mean_score": (totals / np.maximum(counts, 1)).astype(np.float32),
    }


def span_rows(words: TextWords, spans: Spans, names: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Lists the entities of each text with their characters and labels, from `names`."""
    rows: list[list[dict[str, Any]]] = [[] for _ in range(len(words.offsets) - 1)]
    owners = np.searchsorted(words.offsets, spans.first, side="right") - 1
    columns = (owners, words.starts[spans.first], words.ends[spans.last - 1], spans.kinds)
    for owner, start, end, kind in zip(*(column.tolist() for column in columns), strict=True):
        rows[owner].append({"start": start, "end": end, "label": names[kind]})
    return rows


def _entities(
    texts: Sequence[str], words: TextWords, spans: Spans, names: Sequence[str], sums: np.ndarray
) -> list[list[dict[str, Any]]]:
    means = ((sums[spans.last] - sums[spans.first]) / (spans.last - spans.first)).tolist()
    rows = span_rows(words, spans, names)
    score = iter(means)
    for text, row in zip(texts, rows, strict=True):
        for entity in row:
            entity["text"] = text[entity["start"] : entity["end"]]
            entity["score"] = round(next(score), _PROBABILITY_DIGITS)
    return rows


def predicted_words(column: Iterable[Any]) -> tuple[TextWords, list[str]]:
    """BERT's words and their tags from `predicted_tags`: lists, or JSON text of them."""
    rows = json_values(column)
    words = TextWords(
        offsets=offsets_of(np.array([len(row) for row in rows], np.int64)),
        starts=np.array([word["start"] for row in rows for word in row], np.int64),
        ends=np.array([word["end"] for row in rows for word in row], np.int64),
    )
    return words, [word["tag"] for row in rows for word in row]


def tags_of_words(
    rows: Sequence[Sequence[str]], predicted: Mapping[str, Iterable[Any]]
) -> list[list[str]]:
    """The tag of each word: that of the first of BERT's words in it, O if there is none.

    The words of a row, joined by blanks, were the text.
    """
    words, tags = predicted_words(predicted["predicted_tags"])
    counts = np.array([len(row) for row in rows], np.int64)
    offsets = offsets_of(counts)
    sizes = np.array([len(word) for row in rows for word in row], np.int64)
    places = offsets_of(sizes + 1)  # of each word with the blank after it, all texts end to end
    bases = places[offsets]
    starts = places[:-1] - np.repeat(bases[:-1], counts)
    given = TextWords(offsets=offsets, starts=starts, ends=starts + sizes)
    lengths = np.diff(bases) - 1
    found = [
        tags[word] if word != NO_WORD else OUTSIDE
        for word in first_words(given, words, lengths).tolist()
    ]
    return [found[begin:end] for begin, end in itertools.pairwise(offsets.tolist())]

"""Words of texts in windows, and their tags and entities, in NumPy.

For training data, for evaluation and for engines without TensorFlow. Words are BERT's own, between
blanks and punctuation: a token with all that continue it (`##…`). One in several windows belongs to
that with most tokens on its shorter side (google-research/bert `_check_is_max_context`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import between_specials
from bert_tf.data.rows.windows import cut_windows
from bert_tf.data.text.host_wordpiece import TokenizedTexts, Tokenizer
from bert_tf.data.text.vocab_file import CONTINUATION
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.base.labels import rarest_labels
from bert_tf.tasks.base.prediction_rows import json_values
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.schemes import OUTSIDE, Spans, code_tags, entity_spans, tags_of_spans

if TYPE_CHECKING:
    from bert_tf.tasks.tagging.tagged_texts import TaggedTexts

_SPECIALS = 2  # tokens of a row: [CLS] and [SEP]

NO_WORD = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextWords:
    """The words of texts, end to end."""

    offsets: np.ndarray  # int64 [texts + 1], where the words of a text begin and end
    starts: np.ndarray  # int64 [words], characters of the text
    ends: np.ndarray  # exclusive

    @property
    def owners(self) -> np.ndarray:
        """The text of each word, int64 [words]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordRows:
    """Texts ready for a model."""

    rows: EncodedRows  # one per window
    texts: np.ndarray  # int64 [windows], the text of each, ascending
    words: TextWords
    windows: np.ndarray  # int64 [words], the row of each word
    positions: np.ndarray  # of its first token in the row


def encode_words(
    tokenizer: Tokenizer, texts: Sequence[str], *, max_seq_length: int, stride: int
) -> WordRows:
    """Tokenizes texts and cuts them into windows that begin `stride` tokens apart."""
    tokens = tokenizer.tokenize_with_characters(texts)
    capacity = max_seq_length - _SPECIALS
    owner, start, length = cut_windows(tokens.lengths, capacity, stride=stride)
    first_tokens, words = _words(tokenizer, tokens)
    window_of_token = _windows_of_tokens(tokens.offsets[owner] + start, length)
    windows = window_of_token[first_tokens]
    return WordRows(
        rows=_rows(tokenizer, tokens, tokens.offsets[owner] + start, length),
        texts=owner,
        words=words,
        windows=windows,
        positions=1 + first_tokens - (tokens.offsets[owner] + start)[windows],
    )


def _words(tokenizer: Tokenizer, tokens: TokenizedTexts) -> tuple[np.ndarray, TextWords]:
    """The first token of each word, int64 [words], and the words."""
    continues = np.array([entry.startswith(CONTINUATION) for entry in tokenizer.vocab])
    begins = ~continues[tokens.ids]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins))[: len(first)] - 1
    words = TextWords(
        offsets=offsets_of(begins)[tokens.offsets],
        starts=tokens.first_characters[first],
        ends=tokens.last_characters[last],
    )
    return first, words


def _windows_of_tokens(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The window in which each token has most context, the first of equals."""
    windows = np.repeat(np.arange(len(starts)), lengths)
    tokens = flat_ranges(starts, lengths)
    place = tokens - starts[windows]
    context = np.minimum(place, lengths[windows] - 1 - place)
    count = int((starts + lengths).max(initial=0))
    most = np.full(count, -1, np.int64)
    np.maximum.at(most, tokens, context)
    chosen = np.flatnonzero(context == most[tokens])[::-1]
    window_of_token = np.zeros(count, np.int64)
    window_of_token[tokens[chosen]] = windows[chosen]
    return window_of_token


def _rows(
    tokenizer: Tokenizer, tokens: TokenizedTexts, starts: np.ndarray, lengths: np.ndarray
) -> EncodedRows:
    offsets = offsets_of(lengths + _SPECIALS)
    ids = between_specials(tokens.ids[flat_ranges(starts, lengths)], offsets, tokenizer)
    return EncodedRows(ids=ids, offsets=offsets, second_starts=np.diff(offsets).astype(np.int32))


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldTags:
    """Words with a tag in labeled rows: those of the file, or BERT's if it has spans.

    `first`, int64 [words], is the first of BERT's words in each; -1 if the tokenizer keeps none.
    """

    words: TextWords
    tags: list[str]
    first: np.ndarray

    def of_tokens(self) -> tuple[np.ndarray, list[str]]:
        """BERT's words that have a tag, int64 [n], and their tags."""
        kept = np.flatnonzero(self.first != NO_WORD)
        return self.first[kept], [self.tags[word] for word in kept.tolist()]

    def aligned(self, tags: list[str], missing: str) -> list[str]:
        """The tag of each word from those of BERT's words, `missing` if it has none."""
        return [tags[word] if word != NO_WORD else missing for word in self.first.tolist()]


def gold_tags(texts: TaggedTexts, words: TextWords, scheme: str) -> GoldTags:
    """Puts the tags of rows on words, those of entities in `scheme`.

    The first of BERT's words in a word of the file has its tag (`don't`). An entity has every word
    that it touches; of two that touch a word, the first has it.
    """
    lengths = np.array([len(text) for text in texts.texts], np.int64)
    marks = TextWords(offsets=texts.offsets, starts=texts.starts, ends=texts.ends)
    if texts.has_words:
        first = first_words(marks, words, lengths)
        return GoldTags(words=marks, tags=texts.tags, first=first)
    (word_starts, word_ends), (mark_starts, mark_ends) = _on_one_axis((words, marks), lengths)
    first = np.searchsorted(word_ends, mark_starts, side="right")
    last = np.searchsorted(word_starts, mark_ends, side="left")
    taken = np.maximum.accumulate(np.concatenate([[0], last]))[:-1]
    first = np.maximum(first, taken)
    touches = first < last
    numbers: dict[str, int] = {}
    kinds = np.array([numbers.setdefault(tag, len(numbers)) for tag in texts.tags], np.int64)
    spans = Spans(first[touches], last[touches], kinds[touches])
    count = len(words.starts)
    return GoldTags(
        words=words,
        tags=tags_of_spans(spans, count, list(numbers), scheme),
        first=np.arange(count),
    )


def first_words(given: TextWords, words: TextWords, lengths: np.ndarray) -> np.ndarray:
    """The first of BERT's words in each given word, int64 [given words], -1 for none.

    `lengths`, int64 [texts], are the characters of each text.
    """
    (given_starts, given_ends), (starts, _) = _on_one_axis((given, words), lengths)
    first = np.searchsorted(starts, given_starts, side="left")
    next_start = np.append(starts, np.iinfo(np.int64).max)[first]
    return np.where(next_start < given_ends, first, NO_WORD)


def _on_one_axis(
    of_texts: Sequence[TextWords], lengths: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Puts starts and ends on one axis, the characters of a text after the last one's."""
    bases = offsets_of(lengths + 1)
    return [
        (words.starts + bases[words.owners], words.ends + bases[words.owners]) for words in of_texts
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldLabels:
    """The entities of labeled rows by row; without a scheme, the words with a tag other than O."""

    labels: list[str]
    lines: list[int]
    rows: list[int]

    def rarest(self, rows: int) -> list[str]:
        """The label of each row that is rarest in all rows; empty if a row has none."""
        sets: list[list[str]] = [[] for _ in range(rows)]
        for label, row in zip(self.labels, self.rows, strict=True):
            sets[row].append(label)
        return rarest_labels(sets)


def gold_labels(texts: TaggedTexts, scheme: str) -> GoldLabels:
    marks = np.arange(len(texts.tags))
    labels = texts.tags
    if texts.has_words:
        numbers: dict[str, int] = {}
        spans = entity_spans(code_tags(texts.tags, scheme, numbers), texts.offsets)
        names, marks = list(numbers), spans.first
        labels = [names[kind] for kind in spans.kinds.tolist()]
    return GoldLabels(
        labels=labels,
        lines=[texts.mark_lines[mark] for mark in marks.tolist()],
        rows=texts.owners[marks].tolist(),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingHost(HostTask):
    """See `TaggingTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = TAGGING

    labels: tuple[str, ...]
    scheme: str
    window_stride: int

    def word_rows(self, tokenizer: Tokenizer, texts: Sequence[str]) -> WordRows:
        return encode_words(
            tokenizer, texts, max_seq_length=self.max_seq_length, stride=self.window_stride
        )

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        words = self.word_rows(tokenizer, columns["text"])
        return HostRows(sequences=words.rows, details=words)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The most likely tag of each token, int32, and its probability, [n, max_seq_length]."""
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
    Entities have `start` and `end` (characters), `label`, `text` and `score`, the mean probability
    of the tags of their words; tags have `start`, `end` and `tag`. Scores are 0 without words.
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
            entity["score"] = round(next(score), PROBABILITY_DIGITS)
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

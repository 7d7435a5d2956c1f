"""Marks of labeled rows on the words of texts: which word has which tag."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.tasks.base.labels import rarest_labels
from bert_tf.tasks.tagging.rows.tagged_texts import TaggedTexts
from bert_tf.tasks.tagging.rows.word_rows import TextWords
from bert_tf.tasks.tagging.schemes import Spans, code_tags, entity_spans, tags_of_spans

NO_WORD = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldTags:
    """The words that have a tag in labeled rows: those of the file, or BERT's where it has spans.

    Attributes:
        words: their characters.
        tags: of each word.
        first: int64 [words], the first of BERT's words in each, among those of all texts; -1 where
            the tokenizer keeps nothing of a word.
    """

    words: TextWords
    tags: list[str]
    first: np.ndarray

    def of_tokens(self) -> tuple[np.ndarray, list[str]]:
        """BERT's words that have a tag, int64 [n], and their tags."""
        kept = np.flatnonzero(self.first != NO_WORD)
        return self.first[kept], [self.tags[word] for word in kept.tolist()]

    def aligned(self, tags: list[str], missing: str) -> list[str]:
        """The tag of each word from those of BERT's words, `missing` where it is none of them."""
        return [tags[word] if word != NO_WORD else missing for word in self.first.tolist()]


def gold_tags(texts: TaggedTexts, words: TextWords, scheme: str) -> GoldTags:
    """Puts the tags of rows on words.

    A word of the file may be several of BERT's (`don't`), of which the first has its tag. An entity
    has every word that it touches; of two that touch a word, the first has it.

    Args:
        texts: labeled rows.
        words: BERT's words of the texts.
        scheme: to write the tags of entities in.
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
    """The first of BERT's words in each word of a file, int64 [given words]; -1 for none.

    Args:
        given: words of the file.
        words: BERT's, of the same texts.
        lengths: int64 [texts], characters of each text.
    """
    (given_starts, given_ends), (starts, _) = _on_one_axis((given, words), lengths)
    first = np.searchsorted(starts, given_starts, side="left")
    next_start = np.append(starts, np.iinfo(np.int64).max)[first]
    return np.where(next_start < given_ends, first, NO_WORD)


def _on_one_axis(
    of_texts: Sequence[TextWords], lengths: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Starts and ends on one ascending axis: the characters of a text are after the last one's."""
    bases = offsets_of(lengths + 1)
    return [
        (words.starts + bases[words.owners], words.ends + bases[words.owners]) for words in of_texts
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldLabels:
    """The entities of labeled rows; without a scheme, the words with a tag other than O.

    Attributes:
        labels: of each.
        lines: of each.
        rows: of each, ascending.
    """

    labels: list[str]
    lines: list[int]
    rows: list[int]

    def rarest(self, rows: int) -> list[str]:
        """The label of each row that is rarest in all rows; empty where a row has none."""
        sets: list[list[str]] = [[] for _ in range(rows)]
        for label, row in zip(self.labels, self.rows, strict=True):
            sets[row].append(label)
        return rarest_labels(sets)


def gold_labels(texts: TaggedTexts, scheme: str) -> GoldLabels:
    """The label of each entity.

    Args:
        texts: labeled rows.
        scheme: of their tags.
    """
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

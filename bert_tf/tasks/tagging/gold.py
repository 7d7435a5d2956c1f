"""Tags of labeled rows on words; `words` defines these."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges
from bert_tf.base.wording import quantity
from bert_tf.tasks.base.labels import rarest_labels
from bert_tf.tasks.tagging.schemes import (
    OUTSIDE,
    Spans,
    code_tags,
    continuing_tag,
    entity_spans,
    tags_of_spans,
)
from bert_tf.tasks.tagging.words import (
    TaggedWords,
    TextWords,
    basic_words,
    joined_words,
    on_one_axis,
    word_ranges,
)

if TYPE_CHECKING:
    from bert_tf.tasks.tagging.tagged_texts import TaggedTexts


def skipped_words(texts: TaggedTexts, skipped: int) -> tuple[str, ...]:
    """Return a line on words of a file that the tokenizer drops, if there are any."""
    if not skipped:
        return ()
    verb = "has" if skipped == 1 else "have"
    return (
        f"{texts.source}: {quantity(skipped, 'word')} of {len(texts.tags):,} {verb} no token "
        "(blanks, control characters, lone accents); they count nowhere and interrupt no entity",
    )


# Weight in the loss of further parts of words with the tag O. In WNUT-17, such parts, most of them
# of addresses, are a fifth as many as all words. With full weight, they would take that share of
# the loss from the words that count.
_WEIGHT_OF_PARTS_OUTSIDE = 0.1


class LearnedTags(NamedTuple):
    """Training targets of BERT's words.

    Attributes:
        chosen: int64 [n], the words that have a tag.
        tags: their tags.
        weights: float32 [n], their weights in the loss.
        skipped: number of words of the file without a token.
    """

    chosen: np.ndarray
    tags: list[str]
    weights: np.ndarray
    skipped: int = 0


def learned_tags(texts: TaggedTexts, words: TextWords, scheme: str) -> LearnedTags:
    """Return the tags to learn.

    A word of the file may be several of BERT's words. The first one gets its tag, as in
    HuggingFace's `run_ner.py`. The others get a tag that continues it, as with `--label_all_tokens`
    there, so that the model learns whether characters glued to a word belong to its entity.

    Args:
        texts: labeled rows.
        words: all of BERT's words of the texts.
        scheme: scheme of the tags.
    """
    if not texts.has_words:
        count = len(words.starts)
        tags = _tags_of_entities(texts, words, scheme)
        return LearnedTags(np.arange(count), tags, np.ones(count, np.float32))
    first, after = word_ranges(texts.words, words, _lengths(texts))
    counts = after - first
    covered = flat_ranges(first, counts)
    owner = np.repeat(np.arange(len(counts)), counts)
    is_first = covered == first[owner]
    continuing = {tag: continuing_tag(tag, scheme) for tag in set(texts.tags)}
    tags = []
    for word, begins in zip(owner.tolist(), is_first.tolist(), strict=True):
        tag = texts.tags[word]
        tags.append(tag if begins else continuing[tag])
    weights = np.ones(len(tags), np.float32)
    weights[~is_first & (np.array(tags, object) == OUTSIDE)] = _WEIGHT_OF_PARTS_OUTSIDE
    return LearnedTags(covered, tags, weights, skipped=int((counts == 0).sum()))


def gold_words(texts: TaggedTexts, text_words: TextWords, scheme: str) -> TaggedWords:
    """Return the words with gold tags with which predictions are compared.

    For rows of words, these are the words that have a token. For texts with entities, they are
    BERT's words, joined by the gold tags; an entity has every word that it touches.

    Args:
        texts: labeled rows.
        text_words: words of predictions, which cover all tokens.
        scheme: scheme of the tags.
    """
    if texts.has_words:
        marks = texts.words
        first, after = word_ranges(marks, text_words, _lengths(texts))
        counts = first < after
        tags = [texts.tags[word] for word in np.flatnonzero(counts).tolist()]
        return TaggedWords.gold(marks.selected(counts), tags)
    words = basic_words(texts.texts, text_words)
    tagged = TaggedWords.gold(words, _tags_of_entities(texts, words, scheme))
    return joined_words(texts.texts, tagged, scheme)


def _tags_of_entities(texts: TaggedTexts, words: TextWords, scheme: str) -> list[str]:
    """Return the tag of each word; a word that two entities touch belongs to the first."""
    marks = texts.words
    (word_starts, word_ends), (mark_starts, mark_ends) = on_one_axis(
        (words, marks), _lengths(texts)
    )
    first = np.searchsorted(word_ends, mark_starts, side="right")
    last = np.searchsorted(word_starts, mark_ends, side="left")
    # For each entity, the word after the last word of all entities before it
    taken = np.maximum.accumulate(np.concatenate([[0], last]))[:-1]
    first = np.maximum(first, taken)
    touches = first < last
    numbers: dict[str, int] = {}
    kinds = np.array([numbers.setdefault(tag, len(numbers)) for tag in texts.tags], np.int64)
    spans = Spans(first[touches], last[touches], kinds[touches])
    return tags_of_spans(spans, len(words.starts), list(numbers), scheme)


def _lengths(texts: TaggedTexts) -> np.ndarray:
    return np.array([len(text) for text in texts.texts], np.int64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldLabels:
    """The entities of labeled rows; without a scheme, the words with a tag other than O.

    Attributes:
        labels: type of each entity.
        lines: line of each entity, counted from 1.
        rows: row of each entity, counted from 0.
    """

    labels: list[str]
    lines: list[int]
    rows: list[int]

    def rarest(self, rows: int) -> list[str]:
        """Return the label of each row that is rarest in all rows; empty if a row has none."""
        sets: list[list[str]] = [[] for _ in range(rows)]
        for label, row in zip(self.labels, self.rows, strict=True):
            sets[row].append(label)
        return rarest_labels(sets)


def gold_labels(texts: TaggedTexts, scheme: str) -> GoldLabels:
    """Return the labels of rows as the file has them.

    Args:
        texts: labeled rows.
        scheme: scheme of the tags.
    """
    marks = np.arange(len(texts.tags))
    labels = texts.tags
    if texts.has_words:
        numbers: dict[str, int] = {}
        spans = entity_spans(code_tags(texts.tags, scheme, numbers), texts.offsets)
        names = list(numbers)
        marks = spans.first
        labels = [names[kind] for kind in spans.kinds.tolist()]
    return GoldLabels(
        labels=labels,
        lines=[texts.mark_lines[mark] for mark in marks.tolist()],
        rows=texts.owners[marks].tolist(),
    )

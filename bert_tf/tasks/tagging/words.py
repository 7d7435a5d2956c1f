"""Definition of words, which gold tags, predictions and metrics share.

| rows of | words |
|---|---|
| words | those of the row, except words without a token |
| texts | BERT's words, joined where they continue a word |

BERT's basic tokenizer splits at blanks and around punctuation: `Mr. O'Dell` is five words. A model
learns a tag for each of them: the first in a word of a labeled row has the word's tag, the others a
tag that continues it. So the predicted tags show which of BERT's words in a raw text make up a word
as in training (`joined_words`).

Words without a token (line ends, zero-width characters, lone accents) cannot be predicted. They do
not count and interrupt no entity, like words with the label -100 in HuggingFace's scripts.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.normalizer import normalize_code_point
from bert_tf.data.text.punctuation import are_punctuation, are_words_alone
from bert_tf.tasks.base.prediction_rows import json_values
from bert_tf.tasks.tagging.options import PLAIN
from bert_tf.tasks.tagging.schemes import (
    OUTSIDE,
    Prefix,
    Spans,
    closing_tag,
    code_tags,
    entity_spans,
    inside_tag,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextWords:
    """The words of texts, end to end.

    Attributes:
        offsets: int64 [texts + 1]; text i has the words `offsets[i]` to `offsets[i + 1] - 1`.
        starts, ends: int64 [words], characters of the text; the end is exclusive.
    """

    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """Return the text of each word, int64 [words]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def selected(self, is_kept: np.ndarray) -> TextWords:
        """Return some of the words, by bool [words]."""
        return TextWords(
            offsets=offsets_of(is_kept)[self.offsets],
            starts=self.starts[is_kept],
            ends=self.ends[is_kept],
        )

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[str]]) -> Self:
        """Return the words of rows that are joined by blanks to texts."""
        counts = np.array([len(row) for row in rows], np.int64)
        sizes = np.array([len(word) for row in rows for word in row], np.int64)
        offsets = offsets_of(counts)
        places = offsets_of(sizes + 1)  # of each word with a blank after it, all rows end to end
        starts = places[:-1] - np.repeat(places[offsets[:-1]], counts)
        return cls(offsets=offsets, starts=starts, ends=starts + sizes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedWords:
    """Words with their tags.

    Attributes:
        scores: float64 [words], the probability of each tag; 1 for gold tags.
    """

    words: TextWords
    tags: list[str]
    scores: np.ndarray

    @classmethod
    def gold(cls, words: TextWords, tags: list[str]) -> Self:
        """Return words with the tags of labeled rows."""
        return cls(words=words, tags=tags, scores=np.ones(len(tags)))

    def spans(self, scheme: str, numbers: dict[str, int]) -> Spans:
        """Return the entities, in words; new types are added to `numbers`."""
        return entity_spans(code_tags(self.tags, scheme, numbers), self.words.offsets)

    def listed(self) -> list[list[dict[str, Any]]]:
        """Return `{start, end, tag}` of the words of each text."""
        items = [
            {"start": start, "end": end, "tag": tag}
            for start, end, tag in zip(
                self.words.starts.tolist(), self.words.ends.tolist(), self.tags, strict=True
            )
        ]
        bounds = itertools.pairwise(self.words.offsets.tolist())
        return [items[begin:end] for begin, end in bounds]


def word_ranges(
    outer: TextWords, inner: TextWords, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the `inner` words that begin in each `outer` word.

    Args:
        outer, inner: words of the same texts.
        lengths: int64 [texts], the characters of each text.

    Returns:
        The first such word and the word after the last one, int64 [outer words] each; equal if
        there is none.
    """
    (outer_starts, outer_ends), (starts, _) = on_one_axis((outer, inner), lengths)
    first = np.searchsorted(starts, outer_starts, side="left")
    return first, np.searchsorted(starts, outer_ends, side="left")


def on_one_axis(
    of_texts: Sequence[TextWords], lengths: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Place words of all texts on one axis of characters, one text after the other.

    So a single binary search serves all texts. An empty place after each text keeps texts apart.

    Args:
        of_texts: several sets of words of the same texts.
        lengths: int64 [texts], the characters of each text.

    Returns:
        Starts and ends on the axis for each set, int64 [words] each.
    """
    bases = offsets_of(lengths + 1)
    return [
        (words.starts + bases[words.owners], words.ends + bases[words.owners]) for words in of_texts
    ]


def joined_words(texts: Sequence[str], tagged: TaggedWords, scheme: str) -> TaggedWords:
    """Join BERT's words of raw texts to words like those of training.

    A word that follows another one without a blank belongs to the same word if

    - its tag continues the entity of the other one, and
    - one of both is punctuation, or the tag of the other one closes an entity, which then can only
      continue inside a word (`L-` after `U-` in `北京`, where each character is a word for BERT).

    Without a scheme, no tag continues another. There, words without a blank between them and with
    the same tag other than O are one word, unless all are punctuation (`U.S.` is a word, `.)` are
    two). Words with the tag O are not joined, since nothing tells `10-year` from `left,right`.

    A joined word has tag and score of its first part; its tag closes the entity if the tag of a
    later part does. The graph of `serving.graphs.tagging` does the same.

    Args:
        texts: texts [n].
        tagged: BERT's words of the texts, with predicted or gold tags.
        scheme: scheme of the tags.
    """
    words = tagged.words
    count = len(tagged.tags)
    prefixes, kinds = code_tags(tagged.tags, scheme, {})
    owners = words.owners
    is_mark = _begin_with_punctuation(texts, words)
    # Of each word beside the one before it; False for the first word
    is_inside, is_glued, at_mark, is_closed = np.zeros((4, count), bool)
    is_inside[1:] = (kinds[1:] >= 0) & (kinds[1:] == kinds[:-1])
    is_glued[1:] = (owners[1:] == owners[:-1]) & (words.starts[1:] == words.ends[:-1])
    at_mark[1:] = is_mark[1:] | is_mark[:-1]
    is_closed[1:] = np.isin(prefixes[:-1], (Prefix.END, Prefix.SINGLE))
    joins = is_inside & is_glued
    if scheme == PLAIN:
        joins &= at_mark
        number = np.cumsum(~joins) - 1
        has_more = np.bincount(number, weights=~is_mark, minlength=1) > 0
        joins &= has_more[number]
    else:
        joins &= np.isin(prefixes, (Prefix.INSIDE, Prefix.END)) & (at_mark | is_closed)

    first = np.flatnonzero(~joins)
    after = np.append(first[1:], count)[: len(first)]
    closing_parts = offsets_of(joins & (prefixes == Prefix.END))
    closes = closing_parts[after] > closing_parts[first]
    tags = [tagged.tags[word] for word in first.tolist()]
    for word in np.flatnonzero(closes).tolist():
        tags[word] = closing_tag(tags[word], scheme)
    joined = TextWords(
        offsets=offsets_of(~joins)[words.offsets],
        starts=words.starts[first],
        ends=words.ends[after - 1],
    )
    return TaggedWords(words=joined, tags=tags, scores=tagged.scores[first])


def basic_words(texts: Sequence[str], words: TextWords) -> TextWords:
    """Cut words around punctuation and ideographs, into BERT's words.

    These do not depend on predictions, so gold entities of texts are measured in them. Characters
    that the tokenizer drops belong to the word before, as in its offsets.

    Args:
        texts: texts [n].
        words: words of the texts, joined or not; none has a blank in it.
    """
    lengths = np.array([len(text) for text in texts], np.int64)
    ((starts, ends),) = on_one_axis((words,), lengths)
    codes = _code_points(texts)
    alone = np.flatnonzero(are_words_alone(codes))
    kept = np.flatnonzero(_width(codes) != _DROPPED)
    after = kept[np.searchsorted(kept, alone, side="right")]  # the line end of a text is kept
    cuts = np.union1d(alone, after)
    owner = np.searchsorted(starts, cuts, side="right") - 1
    is_after_start = owner >= 0
    cuts = cuts[is_after_start]
    owner = owner[is_after_start]
    cuts = cuts[(cuts > starts[owner]) & (cuts < ends[owner])]
    starts = np.union1d(starts, cuts)
    ends = np.union1d(ends, cuts)
    bases = offsets_of(lengths + 1)
    owners = np.searchsorted(bases, starts, side="right") - 1
    return TextWords(
        offsets=np.searchsorted(starts, bases),
        starts=starts - bases[owners],
        ends=ends - bases[owners],
    )


def have_characters(texts: Sequence[str], words: TextWords) -> np.ndarray:
    """Return whether words have a token in an uncased tokenizer, bool [words]."""
    lengths = np.array([len(text) for text in texts], np.int64)
    ((starts, ends),) = on_one_axis((words,), lengths)
    before = offsets_of(_width(_code_points(texts)) == _PART)
    return before[starts] < before[ends]


def begin_or_end_in_words(texts: Sequence[str], marks: TextWords) -> np.ndarray:
    """Return whether marks of texts cut one of BERT's words in two, bool [marks]."""
    lengths = np.array([len(text) for text in texts], np.int64)
    codes = _code_points(texts)
    width = _width(codes)
    is_part = (width == _PART) & ~are_words_alone(codes)
    kept = np.flatnonzero(width != _DROPPED)  # includes the line end after each text
    cuts = np.zeros(len(marks.starts), bool)
    for place in on_one_axis((marks,), lengths)[0]:
        after = np.searchsorted(kept, place)
        cuts |= is_part[kept[after]] & is_part[kept[after - 1]] & (after > 0)
    return cuts


_DROPPED = -1
_BLANK = 0
_PART = 1


def _width(codes: np.ndarray) -> np.ndarray:
    """Return the classes of characters for an uncased tokenizer.

    Returns:
        int8, `_DROPPED`, `_BLANK` or `_PART` of a word.
    """
    kinds, number = np.unique(codes, return_inverse=True)
    normal = [normalize_code_point(chr(code), lowercase=True) for code in kinds.tolist()]
    widths = {"": _DROPPED, " ": _BLANK}
    return np.array([widths.get(text, _PART) for text in normal], np.int8)[number]


def _begin_with_punctuation(texts: Sequence[str], words: TextWords) -> np.ndarray:
    """Return whether each word begins with punctuation, bool [words]."""
    lengths = np.array([len(text) for text in texts], np.int64)
    ((starts, _),) = on_one_axis((words,), lengths)
    return are_punctuation(_code_points(texts)[starts])


def _code_points(texts: Sequence[str]) -> np.ndarray:
    """Return the characters on the axis of `on_one_axis`, uint32."""
    return np.frombuffer("".join(f"{text}\n" for text in texts).encode("utf-32-le"), np.uint32)


def predicted_words(predicted: Mapping[str, Iterable[Any]]) -> TaggedWords:
    """Return the words of `predicted_tags`, which are lists or their JSON text.

    Models of earlier releases list BERT's words without scores. Each word then gets the score of
    its text, `mean_score`.

    Args:
        predicted: outputs by name, [rows].
    """
    rows = json_values(predicted["predicted_tags"])
    items = [item for row in rows for item in row]
    words = TextWords(
        offsets=offsets_of(np.array([len(row) for row in rows], np.int64)),
        starts=np.array([item["start"] for item in items], np.int64),
        ends=np.array([item["end"] for item in items], np.int64),
    )
    if items and "score" not in items[0]:
        scores = np.array(list(predicted["mean_score"]), np.float64)[words.owners]
    else:
        scores = np.array([item["score"] for item in items], np.float64)
    return TaggedWords(words=words, tags=[item["tag"] for item in items], scores=scores)


def given_words(
    given: TextWords, texts: Sequence[str], predicted: TaggedWords
) -> tuple[np.ndarray, TaggedWords]:
    """Transfer predictions to the words of rows, if these have a token.

    A word gets tag and score of the first predicted word in it.

    Args:
        given: the words of rows, joined by blanks to `texts`.
        texts: texts [rows].
        predicted: the predicted words of the texts.

    Returns:
        Whether each word of the rows has a token, bool [words]; and the words that have one.
    """
    lengths = np.array([len(text) for text in texts], np.int64)
    first, after = word_ranges(given, predicted.words, lengths)
    counts = first < after
    chosen = first[counts]
    tags = [predicted.tags[word] for word in chosen.tolist()]
    words = given.selected(counts)
    return counts, TaggedWords(words=words, tags=tags, scores=predicted.scores[chosen])


def tags_of_all(words: TaggedWords, counts: np.ndarray, scheme: str) -> list[str]:
    """Return a tag for every word of rows; a word without a token is inside an entity, or O.

    Args:
        words: the words that have a token.
        counts: bool [words of the rows], whether each has a token, see `given_words`.
        scheme: scheme of the tags.
    """
    tags = np.full(len(counts), OUTSIDE, object)
    tags[counts] = words.tags
    spans = words.spans(scheme, {})
    place = np.flatnonzero(counts)
    # Entities as +1 and -1 at their bounds: a running sum above 0 is inside one.
    bounds = np.zeros(len(counts) + 1, np.int64)
    bounds[place[spans.first]] += 1
    bounds[place[spans.last - 1]] -= 1
    is_skipped = (np.cumsum(bounds)[:-1] > 0) & ~counts
    before = np.maximum.accumulate(np.where(counts, np.arange(len(counts)), 0))
    for word in np.flatnonzero(is_skipped).tolist():
        tags[word] = inside_tag(tags[before[word]], scheme)
    return tags.tolist()

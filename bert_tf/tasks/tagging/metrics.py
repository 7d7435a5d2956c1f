"""Precision, recall and F1 of entities, equal to those of seqeval, and accuracy of words, 0 to 1.

An entity is right if its type, its first and its last word are (conlleval.pl of CoNLL-2000, Tjong
Kim Sang and Buchholz 2000). Quotients by 0 are 0. `words` defines the words. They are compared by
their characters, so that metrics follow from the entities and tags of `predictions.jsonl`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.serving.signatures import WORDS_WITHOUT_TOKENS
from bert_tf.tasks.base.labels import LabelMeasures, quotient
from bert_tf.tasks.base.prediction_rows import TaskReport, TaskResults, prediction_rows
from bert_tf.tasks.base.standard_errors import jackknife_errors
from bert_tf.tasks.tagging.gold import gold_words, skipped_words
from bert_tf.tasks.tagging.host import columns_by_words, span_rows
from bert_tf.tasks.tagging.options import PLAIN, TAGGING
from bert_tf.tasks.tagging.schemes import Spans, code_tags, entity_spans, strict_spans
from bert_tf.tasks.tagging.tagged_texts import TaggedTexts
from bert_tf.tasks.tagging.words import TaggedWords, TextWords, predicted_words


class TaggingScores:
    """Measures tagged words of the same texts; without a scheme, each word but O is an entity.

    Args:
        gold, predicted: tagged words. The words of raw texts may differ, since they depend on tags.
        scheme: scheme of the tags.
    """

    def __init__(self, gold: TaggedWords, predicted: TaggedWords, scheme: str):
        numbers: dict[str, int] = {}
        self._predicted = _entities(predicted, scheme, numbers)
        self._gold = _entities(gold, scheme, numbers)
        self._counts = _counts(self._gold, self._predicted, len(numbers))
        self._numbers = numbers
        self._strict_f1: float | None = None
        if scheme != PLAIN:
            # The same types as above, whose numbers are kept.
            strict = _counts(
                _entities(gold, scheme, numbers, is_strict=True),
                _entities(predicted, scheme, numbers, is_strict=True),
                len(numbers),
            )
            self._strict_f1 = _measures(strict.totals())["f1"]
        tags: dict[str, int] = {}
        self._tags = _tags(gold, tags), _tags(predicted, tags)
        self._num_tags = len(tags)
        hits, _, words = _counts(*self._tags, len(tags))
        self._accuracy = float(quotient(hits.sum(), words.sum()))

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name.

        - `f1`, `precision` and `recall` of all entities as seqeval's default mode finds them
        - `macro_f1`, the mean of the types' F1
        - `accuracy`, the fraction of words with the right tag
        - with a scheme `strict_f1`, of the entities that seqeval's strict mode finds
        """
        metrics = {**_entity_metrics(self._counts), "accuracy": self._accuracy}
        if self._strict_f1 is not None:
            metrics["strict_f1"] = self._strict_f1
        return metrics

    def errors(self, texts: int) -> dict[str, float]:
        """Return standard errors of metrics, with the texts as rows.

        Entities of a text are not independent of each other, but right or wrong together.

        Args:
            texts: number of texts.
        """

        def entity_metrics(*counts_by_text: np.ndarray) -> dict[str, float]:
            return _entity_metrics(_Counts(*(counts.sum(axis=0) for counts in counts_by_text)))

        def accuracy(hits: np.ndarray, words: np.ndarray) -> dict[str, float]:
            return {"accuracy": float(quotient(hits.sum(), words.sum()))}

        kinds = len(self._numbers)
        by_text = _counts(self._gold, self._predicted, kinds, texts=texts)
        hits, _, words = _counts(*self._tags, self._num_tags, texts=texts)
        errors = jackknife_errors(entity_metrics, *by_text)
        return errors | jackknife_errors(accuracy, hits, words)

    def offset_f1(self, marks: TextWords, kinds: Sequence[str]) -> float:
        """Return the F1 of predicted entities by the characters that the file marks.

        An entity that begins or ends inside a word is never right here.

        Args:
            marks, kinds: entities of the file, and the type of each.
        """
        numbers = dict(self._numbers)
        codes = [numbers.setdefault(kind, len(numbers)) for kind in kinds]
        starts, ends = _places(marks)
        gold = Spans(starts, ends, np.array(codes, np.int32))
        counts = _counts(gold, self._predicted, len(numbers))
        return _measures(counts.totals())["f1"]

    def report(self) -> TaskReport:
        names = sorted(self._numbers)
        order = np.array([self._numbers[name] for name in names], np.int64)
        right, predicted, gold = (counts[order] for counts in self._counts)
        measures = LabelMeasures(right, predicted, gold, rows=0, labels=names, counted="support")
        details = {"labels": measures.details()["labels"]}
        return TaskReport(details=details, lines=tuple(measures.lines()))


_TEXT_BITS = 32  # of a place: the bits above have the text of a word, those below its character


def _places(words: TextWords) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and ends of words as numbers that differ between texts, int64 [words] each."""
    texts = words.owners << _TEXT_BITS
    return texts + words.starts, texts + words.ends


def _entities(
    tagged: TaggedWords, scheme: str, numbers: dict[str, int], *, is_strict: bool = False
) -> Spans:
    """Return entities by their `_places`; new types are added to `numbers`."""
    codes = code_tags(tagged.tags, scheme, numbers)
    offsets = tagged.words.offsets
    spans = strict_spans(codes, offsets, scheme) if is_strict else entity_spans(codes, offsets)
    starts, ends = _places(tagged.words)
    return Spans(starts[spans.first], ends[spans.last - 1], spans.kinds)


def _tags(words: TaggedWords, numbers: dict[str, int]) -> Spans:
    """Return words by their `_places`, with their tags as types."""
    codes = [numbers.setdefault(tag, len(numbers)) for tag in words.tags]
    return Spans(*_places(words.words), np.array(codes, np.int32))


class _Counts(NamedTuple):
    """Numbers of entities, int64 [kinds] or [texts, kinds] each.

    Attributes:
        right: predicted entities that the data have.
        predicted: entities of the predictions.
        gold: entities of the data.
    """

    right: np.ndarray
    predicted: np.ndarray
    gold: np.ndarray

    def totals(self) -> _Counts:
        """Return the sums over all types."""
        return _Counts(self.right.sum(), self.predicted.sum(), self.gold.sum())


def _counts(gold: Spans, predicted: Spans, kinds: int, *, texts: int | None = None) -> _Counts:
    """Count entities that are right, predicted, and in the data.

    Args:
        gold, predicted: entities in order, by places, see `_places`.
        kinds: number of types.
        texts: number of texts, to count by text; None counts those of all texts together.
    """
    # Entities of a text do not overlap, so at most one in the data begins at a place.
    place = np.searchsorted(gold.first, predicted.first)
    is_right = place < len(gold.first)
    place = place[is_right]
    is_right[is_right] = (
        (gold.first[place] == predicted.first[is_right])
        & (gold.last[place] == predicted.last[is_right])
        & (gold.kinds[place] == predicted.kinds[is_right])
    )
    right = Spans(*(column[is_right] for column in predicted))

    def count(entities: Spans) -> np.ndarray:
        if texts is None:
            return np.bincount(entities.kinds.astype(np.int64), minlength=kinds)
        # A number for each pair of a text and a type, counted in one pass.
        pairs = (entities.first >> _TEXT_BITS) * kinds + entities.kinds
        return np.bincount(pairs, minlength=texts * kinds).reshape(texts, kinds)

    return _Counts(count(right), count(predicted), count(gold))


def _entity_metrics(counts: _Counts) -> dict[str, float]:
    """Compute F1, precision and recall of all entities, and the mean F1, from int [kinds]."""
    # Types that neither the data nor the predictions have do not count.
    right, predicted, gold = counts
    f1 = quotient(2 * right, predicted + gold)[predicted + gold > 0]
    macro_f1 = float(f1.mean()) if len(f1) else 0.0
    return {**_measures(counts.totals()), "macro_f1": macro_f1}


def _measures(totals: _Counts) -> dict[str, float]:
    """Compute F1, precision and recall from three numbers."""
    right, predicted, gold = totals
    return {
        "f1": float(quotient(2 * right, predicted + gold)),
        "precision": float(quotient(right, predicted)),
        "recall": float(quotient(right, gold)),
    }


def tagging_results(source: TaggedTexts, predicted: dict[str, Any], scheme: str) -> TaskResults:
    """Compare predictions, from `prediction_columns` or an exported model, with labeled rows.

    Rows of words are predicted by their words, see `columns_by_words`.

    Args:
        source: labeled rows.
        predicted: outputs by name, [rows].
        scheme: scheme of the tags.
    """
    if source.has_words:
        predicted = columns_by_words(source.words, source.texts, predicted, scheme)
    tagged = predicted_words(predicted)
    gold = gold_words(source, tagged.words, scheme)
    scores = TaggingScores(gold, tagged, scheme)
    metrics = scores.metrics()
    report = scores.report()
    numbers: dict[str, int] = {}
    entities = gold.spans(scheme, numbers)
    columns: dict[str, Sequence[Any]] = {
        **source.place_columns,
        "text": source.texts,
        "entities": span_rows(gold.words, entities, list(numbers)),
        "tags": gold.listed(),
    }
    if source.has_words:
        report = _with_skipped(report, source, len(source.tags) - len(gold.tags))
    else:
        metrics["offset_f1"] = scores.offset_f1(source.words, source.tags)
        columns["annotated_entities"] = source.marked
    predictions = prediction_rows(TAGGING.predictions, predicted)
    return TaskResults(
        metrics=metrics,
        predictions=[
            {**dict(zip(columns, cells, strict=True)), **row}
            for *cells, row in zip(*columns.values(), predictions, strict=True)
        ],
        report=report,
        errors=scores.errors(len(source.texts)),
    )


def _with_skipped(report: TaskReport, source: TaggedTexts, skipped: int) -> TaskReport:
    if not skipped:
        return report
    return dataclasses.replace(
        report,
        details={**report.details, WORDS_WITHOUT_TOKENS: skipped},
        lines=(*report.lines, *skipped_words(source, skipped)),
    )

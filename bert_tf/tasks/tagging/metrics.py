"""Precision, recall and F1 of entities, equal to those of seqeval, and accuracy of words, 0 to 1.

An entity is right if its type, first and last word are (conlleval.pl of CoNLL-2000, Tjong Kim Sang
and Buchholz 2000). Quotients by 0 are 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.tasks.base.labels import LabelMeasures, quotient
from bert_tf.tasks.base.prediction_rows import TaskReport, TaskResults, prediction_rows
from bert_tf.tasks.base.report_sections import (
    MOST_ROWS,
    Section,
    TableSection,
    label_section,
    table_by_length,
    worst_rows,
)
from bert_tf.tasks.tagging.host import gold_tags, predicted_words, span_rows
from bert_tf.tasks.tagging.options import PLAIN, TAGGING
from bert_tf.tasks.tagging.schemes import OUTSIDE, Spans, code_tags, entity_spans, strict_spans
from bert_tf.tasks.tagging.tagged_texts import TaggedTexts

if TYPE_CHECKING:
    from bert_tf.tasks.tagging.task import TaggingTask


class TaggingScores:
    """Measures the tags of all words; without a scheme, each other than O is an entity.

    `offsets`, int64 [rows + 1], are where rows begin and end.
    """

    def __init__(
        self, gold: Sequence[str], predicted: Sequence[str], offsets: np.ndarray, scheme: str
    ):
        numbers: dict[str, int] = {}
        codes = code_tags(gold, scheme, numbers), code_tags(predicted, scheme, numbers)
        self._names = list(numbers)
        self._counts = _counts(
            entity_spans(codes[0], offsets), entity_spans(codes[1], offsets), len(numbers)
        )
        self._strict_f1: float | None = None
        if scheme != PLAIN:
            strict = _counts(
                strict_spans(codes[0], offsets, scheme),
                strict_spans(codes[1], offsets, scheme),
                len(numbers),
            )
            self._strict_f1 = _measures(*(counts.sum() for counts in strict))["f1"]
        hits = np.fromiter(map(str.__eq__, gold, predicted), bool, len(gold))
        self._accuracy = float(hits.mean()) if len(gold) else 0.0

    def metrics(self) -> dict[str, float]:
        """`f1`, `precision` and `recall` of all entities as seqeval's default mode finds them;
        `macro_f1`, the mean of the types' F1; `accuracy`, the fraction of words with the right
        tag; with a scheme `strict_f1`, of the entities that seqeval's strict mode finds.
        """
        _, predicted, gold = self._counts
        f1 = quotient(2 * self._counts[0], predicted + gold)[predicted + gold > 0]
        metrics = {
            **_measures(*(counts.sum() for counts in self._counts)),
            "macro_f1": float(f1.mean()) if len(f1) else 0.0,
            "accuracy": self._accuracy,
        }
        return metrics if self._strict_f1 is None else {**metrics, "strict_f1": self._strict_f1}

    def report(self) -> TaskReport:
        order = np.array(sorted(range(len(self._names)), key=self._names.__getitem__), np.int64)
        right, predicted, gold = (counts[order] for counts in self._counts)
        names = [self._names[number] for number in order]
        measures = LabelMeasures(right, predicted, gold, rows=0, labels=names, counted="support")
        details = {"labels": measures.details()["labels"]}
        return TaskReport(details=details, lines=tuple(measures.lines()))


def _counts(gold: Spans, predicted: Spans, kinds: int) -> tuple[np.ndarray, ...]:
    """Entities that are right, predicted, and in the data, each int64 [kinds]."""
    place = np.searchsorted(gold.first, predicted.first)
    is_right = place < len(gold.first)
    place = place[is_right]
    is_right[is_right] = (
        (gold.first[place] == predicted.first[is_right])
        & (gold.last[place] == predicted.last[is_right])
        & (gold.kinds[place] == predicted.kinds[is_right])
    )
    return tuple(
        np.bincount(of.astype(np.int64), minlength=kinds)
        for of in (predicted.kinds[is_right], predicted.kinds, gold.kinds)
    )


def _measures(right: np.ndarray, predicted: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    return {
        "f1": float(quotient(2 * right, predicted + gold)),
        "precision": float(quotient(right, predicted)),
        "recall": float(quotient(right, gold)),
    }


def tagging_results(source: TaggedTexts, predicted: dict[str, Any], scheme: str) -> TaskResults:
    """Compares predictions, from `prediction_columns` or an exported model, with labeled rows.

    A word of the file has the tag of the first of BERT's words in it, O if there is none.
    """
    words, tags = predicted_words(predicted["predicted_tags"])
    gold = gold_tags(source, words, scheme)
    numbers: dict[str, int] = {}
    spans = entity_spans(code_tags(gold.tags, scheme, numbers), gold.words.offsets)
    rows = zip(
        source.lines,
        source.texts,
        span_rows(gold.words, spans, list(numbers)),
        prediction_rows(TAGGING.predictions, predicted),
        strict=True,
    )
    scores = TaggingScores(gold.tags, gold.aligned(tags, OUTSIDE), gold.words.offsets, scheme)
    return TaskResults(
        metrics=scores.metrics(),
        predictions=[
            {"line": line, "text": text, "entities": entities, **cells}
            for line, text, entities, cells in rows
        ],
        report=scores.report(),
    )


_Span = tuple[int, int, str]


def sections(
    task: TaggingTask, source: TaggedTexts, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    yield label_section(results.report.details, counted="entities")
    gold, found = (
        [_spans(row[name]) for row in results.predictions]
        for name in ("entities", "predicted_entities")
    )
    missed = [of_row - other for of_row, other in zip(gold, found, strict=True)]
    added = [other - of_row for of_row, other in zip(gold, found, strict=True)]
    yield from _error_kinds(missed, added)
    errors = np.array([len(a) + len(b) for a, b in zip(missed, added, strict=True)])
    texts = {"text": source.texts}
    yield table_by_length(
        texts,
        {
            "rows without an error": ("fraction", errors == 0),
            "entities per row": ("number", np.array([len(of_row) for of_row in gold])),
            "errors per row": ("number", errors),
        },
    )
    yield worst_rows(
        errors,
        errors > 0,
        source.lines,
        texts,
        lambda row: {
            "missed": _listed(source.texts[row], missed[row]),
            "predicted wrongly": _listed(source.texts[row], added[row]),
            "right": _listed(source.texts[row], gold[row] & found[row]),
        },
        note="By the number of entities that are missed or predicted wrongly.",
    )


def _spans(entities: Sequence[Mapping[str, Any]]) -> set[_Span]:
    return {(entity["start"], entity["end"], entity["label"]) for entity in entities}


def _error_kinds(missed: list[set[_Span]], added: list[set[_Span]]) -> Iterator[TableSection]:
    kinds: Counter[tuple[str, str, str]] = Counter()
    for of_row, other in zip(missed, added, strict=True):
        explained = set()
        for span in of_row:
            rival = _rival(span, other)
            if rival is None:
                kinds["not found", span[2], ""] += 1
                continue
            explained.add(rival)
            same_place = rival[:2] == span[:2]
            kinds["other type" if same_place else "other bounds", span[2], rival[2]] += 1
        for span in other - explained:
            kinds["no entity there", "", span[2]] += 1
    if not kinds:
        return
    yield TableSection(
        title="Errors",
        columns=(
            ("error", "text"),
            ("type", "text"),
            ("predicted type", "text"),
            ("entities", "count"),
        ),
        rows=[
            [*kind, count]
            for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
        ][:MOST_ROWS],
        note="An entity with other bounds overlaps with a prediction.",
    )


def _rival(span: _Span, others: set[_Span]) -> _Span | None:
    """The predicted entity with the most overlap with a missed one; the first among equals."""
    overlaps = [
        (min(span[1], other[1]) - max(span[0], other[0]), -other[0], other) for other in others
    ]
    best = max(overlaps, default=(0, 0, None))
    return best[2] if best[0] > 0 else None


def _listed(text: str, spans: set[_Span]) -> str:
    return ", ".join(f"{text[start:end]} ({label})" for start, end, label in sorted(spans)) or "-"

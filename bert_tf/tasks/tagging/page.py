"""The sections of a page on entities: missed, mistaken and made-up ones, and where they are."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bert_tf.tasks.base.report_sections import (
    MOST_EXAMPLES,
    Mark,
    MatrixSection,
    Section,
    TableSection,
    label_section,
    length_bins,
    table_by_group,
    table_by_length,
    worst_rows,
)

if TYPE_CHECKING:
    from bert_tf.tasks.base.prediction_rows import TaskResults
    from bert_tf.tasks.tagging.tagged_texts import TaggedTexts
    from bert_tf.tasks.tagging.task import TaggingTask

_MATRIX_TYPES = 20  # more types make a list instead of a matrix
_NOTHING = "nothing"
_RIGHT = "right"
_NOT_FOUND = "not found"
_MADE_UP = "no entity there"
_OTHER_BOUNDS = "other bounds"
_OTHER_TYPE = "other type"
_KINDS = {
    _RIGHT: "",
    _NOT_FOUND: "nothing is predicted there",
    _OTHER_TYPE: "the same words with another type",
    _OTHER_BOUNDS: "an overlapping prediction of any type",
    _MADE_UP: "predicted where nothing is",
}


class Span(NamedTuple):
    """An entity: first character, the one after the last, and its type."""

    start: int
    end: int
    label: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """An entity of the data, a prediction, or both together."""

    row: int
    kind: str  # a key of `_KINDS`
    gold: Span | None  # None if there is only a prediction
    predicted: Span | None  # None if nothing is predicted there


def judge_entities(gold: Sequence[set[Span]], predicted_spans: Sequence[set[Span]]) -> list[Judged]:
    """Match entities of the data with predictions; both are sets [rows].

    An entity that is not predicted exactly is matched with the wrong prediction that overlaps with
    it most, the first among equals. Predictions without a match are made up.
    """
    judged = []
    for row, (of_data, predicted) in enumerate(zip(gold, predicted_spans, strict=True)):
        judged += [
            Judged(row=row, kind=_RIGHT, gold=span, predicted=span)
            for span in sorted(of_data & predicted)
        ]
        added = predicted - of_data
        explained = set()
        for span in sorted(of_data - predicted):
            rival = _rival(span, added)
            if rival is None:
                judged.append(Judged(row=row, kind=_NOT_FOUND, gold=span, predicted=None))
                continue
            explained.add(rival)
            has_same_place = rival[:2] == span[:2]
            kind = _OTHER_TYPE if has_same_place else _OTHER_BOUNDS
            judged.append(Judged(row=row, kind=kind, gold=span, predicted=rival))
        judged += [
            Judged(row=row, kind=_MADE_UP, gold=None, predicted=span)
            for span in sorted(added - explained)
        ]
    return judged


def _rival(span: Span, others: set[Span]) -> Span | None:
    """Return the prediction that overlaps most with an entity; None if none does."""
    overlaps = [
        (min(span.end, other.end) - max(span.start, other.start), -other.start, other)
        for other in others
    ]
    characters, _, rival = max(overlaps, default=(0, 0, None))
    return rival if characters > 0 else None


def sections(
    task: TaggingTask, source: TaggedTexts, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    """Yield the sections of an evaluation's page, see `TaskDeclaration.page`."""
    yield label_section(results.report.details, counted="entities")
    gold = [_spans(row["entities"]) for row in results.predictions]
    spans = [_spans(row["predicted_entities"]) for row in results.predictions]
    judged = judge_entities(gold, spans)
    yield from _error_kinds(judged)
    yield from _confusions(judged)
    yield from _by_words(judged, source.texts)
    yield from _hard_texts(judged, source.texts)
    wrong_rows = [each.row for each in judged if each.kind != _RIGHT]
    errors = np.bincount(wrong_rows, minlength=len(source.texts))
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
        source.all_places,
        texts,
        lambda row: {
            "missed": _listed(source.texts[row], gold[row] - spans[row]),
            "predicted wrongly": _listed(source.texts[row], spans[row] - gold[row]),
            "right": _listed(source.texts[row], gold[row] & spans[row]),
        },
        note="By the number of entities that are missed, predicted wrongly, or both.",
        marks=lambda row: {"text": _marks(gold[row], spans[row])},
        legend={
            "right": "an entity, and predicted",
            "missed": "an entity that is not predicted",
            "wrong": "predicted, but no such entity",
            "both": "an entity with another prediction",
        },
    )


def _spans(entities: Sequence[Mapping[str, Any]]) -> set[Span]:
    return {Span(entity["start"], entity["end"], entity["label"]) for entity in entities}


def _error_kinds(judged: Sequence[Judged]) -> Iterator[TableSection]:
    """Count entities by kind of error; yield nothing if there are no entities at all."""
    counts = Counter(each.kind for each in judged)
    if not counts:
        return
    yield TableSection(
        title="Errors",
        columns=(
            ("entities", "text"), ("number", "count"), ("of all", "share"), ("that is", "text"),
        ),
        rows=[
            [kind, counts[kind], counts[kind] / len(judged), meaning]
            for kind, meaning in _KINDS.items()
            if counts[kind]
        ],
    )  # fmt: skip


def _confusions(judged: Sequence[Judged]) -> Iterator[Section]:
    """Count entities by type and predicted type; as a list if there are many types."""
    pairs = Counter(
        (
            _NOTHING if each.gold is None else each.gold.label,
            _NOTHING if each.predicted is None else each.predicted.label,
        )
        for each in judged
    )
    types = sorted({name for pair in pairs for name in pair} - {_NOTHING})
    names = [*types, _NOTHING]
    if len(types) > _MATRIX_TYPES:
        wrong = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]]
        yield TableSection(
            title="Most frequent confusions",
            columns=(("type", "text"), ("predicted type", "text"), ("entities", "count")),
            rows=[[*pair, count] for pair, count in wrong[:MOST_EXAMPLES]],
        )
    elif types:
        yield MatrixSection(
            title="Types",
            row_title="type",
            column_title="predicted",
            rows=names,
            columns=names,
            counts=np.array([[pairs[row, column] for column in names] for row in names]),
            note="Of entities and the predictions that overlap with them. The last column has "
            "entities that are not found, the last row predictions where no entity is.",
        )


def _by_words(judged: Sequence[Judged], texts: Sequence[str]) -> Iterator[TableSection]:
    """Tabulate the share of entities that are found, by their number of words."""
    of_data = [(each, each.gold) for each in judged if each.gold is not None]
    if not of_data:
        return
    words = np.array(
        [len(texts[each.row][span.start : span.end].split()) for each, span in of_data]
    )
    kinds = np.array([each.kind for each, _ in of_data])
    measures: dict[str, Any] = {
        name: ("fraction", kinds == kind)
        for name, kind in (
            ("right", _RIGHT), ("other bounds", _OTHER_BOUNDS), ("not found", _NOT_FOUND),
        )
    }  # fmt: skip
    table = table_by_group("By length of the entity", "words", *length_bins(words), measures)
    columns = (table.columns[0], ("entities", "count"), *table.columns[2:])
    yield dataclasses.replace(table, columns=columns)


def _hard_texts(judged: Sequence[Judged], texts: Sequence[str]) -> Iterator[TableSection]:
    """List the texts of entities that are most often wrong, in the data or predicted."""
    wrong: Counter[str] = Counter()
    number: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    for each in judged:
        span = each.predicted if each.gold is None else each.gold
        assert span is not None
        text = texts[each.row][span.start : span.end].casefold()
        number[text] += 1
        if each.kind != _RIGHT:
            wrong[text] += 1
            kinds.setdefault(text, Counter())[each.kind] += 1
    repeated = [(text, count) for text, count in wrong.most_common() if count > 1]
    if not repeated:
        return
    yield TableSection(
        title="Most often wrong",
        columns=(
            ("wrong", "count"), ("of", "count"), ("entity", "text"), ("most often", "text"),
        ),
        rows=[
            [count, number[text], text, kinds[text].most_common(1)[0][0]]
            for text, count in repeated[: MOST_EXAMPLES // 2]
        ],
        note="Texts that are wrong twice or more, ignoring case. Where the data and the model "
        "disagree again and again, the annotation may be at fault.",
    )  # fmt: skip


def _marks(gold: set[Span], predicted: set[Span]) -> list[Mark]:
    marks = [Mark(*span[:2], "right", span.label) for span in gold & predicted]
    marks += [Mark(*span[:2], "missed", span.label) for span in gold - predicted]
    marks += [Mark(*span[:2], "wrong", f"→ {span.label}") for span in predicted - gold]
    return sorted(marks)


def _listed(text: str, spans: set[Span]) -> str:
    entities = (f"{text[span.start : span.end]} ({span.label})" for span in sorted(spans))
    return ", ".join(entities) or "-"

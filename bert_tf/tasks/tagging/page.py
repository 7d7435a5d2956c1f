"""The page of an evaluation of a tagger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.tasks.base.report_sections import (
    MOST_ROWS,
    Example,
    ExamplesSection,
    Section,
    TableSection,
    label_section,
    length_bins,
    table_by_group,
    worst_first,
)
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.tagging.tagged_texts import TaggedTexts
from bert_tf.tasks.tagging.task import TaggingTask

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
    groups, names = length_bins(np.array([len(text) for text in source.texts]))
    yield table_by_group(
        "By length",
        "characters",
        groups,
        names,
        {
            "rows without an error": ("fraction", errors == 0),
            "entities per row": ("number", np.array([len(of_row) for of_row in gold])),
            "errors per row": ("number", errors),
        },
    )
    yield ExamplesSection(
        title="Most wrong rows",
        examples=[
            Example(
                line=source.lines[row],
                facts={
                    "missed": _listed(source.texts[row], missed[row]),
                    "predicted wrongly": _listed(source.texts[row], added[row]),
                    "right": _listed(source.texts[row], gold[row] & found[row]),
                },
                texts={"text": source.texts[row]},
            )
            for row in worst_first(errors).tolist()
            if errors[row]
        ],
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
        note="An entity with other bounds overlaps with what is predicted.",
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

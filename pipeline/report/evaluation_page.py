"""`report.html`: what a model made of labeled rows, as one page that needs nothing beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from bert_tf.base.wording import quantity
from bert_tf.tasks.base.report_sections import MOST_EXAMPLES, Section, TableSection
from bert_tf.tasks.base.task import Task, TaskResults
from bert_tf.tasks.registry import page_function
from pipeline.report.document import html_document
from pipeline.report.section_html import section_html


def evaluation_page(
    task: Task,
    source: Any,
    results: TaskResults,
    *,
    model: str,
    facts: Sequence[str] = (),
    chosen_by: str | None = None,
) -> str:
    """The page as HTML.

    Args:
        task: the model's, as it was fitted.
        source: the rows that it read.
        results: what it was measured as.
        model: where it is.
        facts: sentences on model and rows, without their period.
        chosen_by: the metric that chose the model of its run, if that is known.
    """
    title = f"{task.declaration.name}: {model} on {source.source}"
    rejected = f", {len(source.rejects):,} rejected" if source.rejects else ""
    lead = [f"{quantity(len(source), 'row')} of {source.source}{rejected}", *facts]
    page = page_function(task.declaration.name)
    made = () if page is None else page(task, source, results.predicted, results)
    sections: list[Section] = [*made] or [_first_predictions(results.predictions)]
    return html_document(
        title,
        "".join(f"<p>{escape(line[0].upper())}{escape(line[1:])}.</p>" for line in lead)
        + "".join(f'<p class="warning">{escape(line)}</p>' for line in results.report.warnings)
        + _metrics(results.metrics, chosen_by)
        + "\n"
        + "".join(map(section_html, sections)),
        command="evaluate",
    )


def _metrics(metrics: Mapping[str, float], chosen_by: str | None) -> str:
    cells = "".join(
        f"<div{_chosen(name, chosen_by)}><dt>{escape(name)}</dt><dd>{value:.4f}</dd></div>"
        for name, value in metrics.items()
    )
    return f'<dl class="metrics">{cells}</dl>'


def _chosen(name: str, chosen_by: str | None) -> str:
    if name != chosen_by:
        return ""
    return ' class="chose" title="the metric that chose the model of the run"'


def _first_predictions(predictions: Sequence[Mapping[str, Any]]) -> TableSection:
    """What is shown of a task that says nothing of its page."""
    shown = predictions[:MOST_EXAMPLES]
    names = list(dict.fromkeys(name for row in shown for name in row))
    return TableSection(
        title="First predictions",
        columns=tuple((name, "text") for name in names),
        rows=[[_as_text(row[name]) if name in row else None for name in names] for row in shown],
        note="All are in predictions.jsonl.",
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

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
from pipeline.report.section_html import section_html

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --raised: #f4f5f7; --text: #1b1f24;
  --soft: #57606a; --line: #d0d7de; --accent: #2f6db3; --warn: #9a3412; --shade: 45%; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --raised: #1f242b;
  --text: #e6e8eb; --soft: #a5adb8; --line: #3a424d; --accent: #6ba7ec; --warn: #fdba74; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem;
  padding: 1.5rem 1rem 4rem; background: var(--ground); color: var(--text); }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem; }
p { margin: .4rem 0; overflow-wrap: anywhere; } .note { color: var(--soft); max-width: 45rem; }
.warning { color: var(--warn); } .warning::before { content: "Warning: "; font-weight: 600; }
.metrics { display: grid; gap: .5rem; padding: 0; margin: 1.2rem 0;
  grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); }
.metrics div { background: var(--raised); border-radius: .4rem; padding: .5rem .8rem; }
.metrics dt { color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
.metrics dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.metrics .chose { outline: 2px solid var(--accent); }
.scrolls { overflow-x: auto; } :focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; } tbody th { font-weight: 400; } .number { text-align: right; }
.fraction { position: relative; min-width: 7rem; }
.fraction span { position: relative; } .fraction .bar { position: absolute; left: 0; bottom: 0;
  height: 3px; background: var(--accent); }
.matrix td { background: color-mix(in srgb, var(--accent) calc(var(--fraction) * var(--shade)),
  var(--ground)); border: 1px solid var(--line); } .matrix .right { font-weight: 600; }
figure { margin: .5rem 0; } svg { width: 100%; max-width: 32rem; height: auto; font-size: 13px; }
svg text { fill: var(--soft); } svg .title { fill: var(--text); } svg path { fill: none; }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
svg .diagonal { stroke: var(--soft); stroke-dasharray: 5 4; }
svg .point { fill: var(--accent); fill-opacity: .55; stroke: var(--accent); }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--soft); }
.examples { padding: 0; list-style: none; margin: 0; }
.examples li { border-top: 1px solid var(--line); padding: .7rem 0; }
.examples p { white-space: pre-wrap; } .examples dl { display: flex; flex-wrap: wrap;
  gap: .1rem 1.2rem; margin: 0; font-size: .9rem; } .examples dt { display: inline;
  color: var(--soft); } .examples dt::after { content: ": "; }
.examples dd { display: inline; margin: 0; overflow-wrap: anywhere; }
@media (max-width: 30rem) { th, td { padding: .2rem .4rem; font-size: .9rem; }
  .fraction { min-width: 4.2rem; } h1 { font-size: 1.2rem; } }
"""


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
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><main>"
        f"<h1>{escape(title)}</h1>\n"
        + "".join(f"<p>{escape(line[0].upper())}{escape(line[1:])}.</p>" for line in lead)
        + "".join(f'<p class="warning">{escape(line)}</p>' for line in results.report.warnings)
        + _metrics(results.metrics, chosen_by)
        + "\n"
        + "".join(map(section_html, sections))
        + "</main></body></html>\n"
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

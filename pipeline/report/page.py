"""The pages of evaluations, artifacts and corpora."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.base.wording import quantity
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.report_sections import MOST_EXAMPLES, Section, TableSection
from bert_tf.tasks.base.task import Task
from bert_tf.tasks.registry import page_function
from bert_tf.training.metrics_log import read_metrics
from pipeline.report.artifact import (
    content_lines,
    foreign_headline,
    headline,
    input_facts,
    is_foreign_model,
    measured_facts,
    model_lines,
    require_manifest,
    setting_facts,
)
from pipeline.report.document import html_document, section_html, sentence_case, table_of
from pipeline.report.records import ShownExample, ShownToken, SplitSummary, summarize_records
from pipeline.report.runs import plots_html, plots_style, read_runs

if TYPE_CHECKING:
    from pipeline.report.corpus.page import Corpus

_LEGEND = (
    '<p><span class="target mask">masked<small> → target</small></span> '
    '<span class="target random">replaced at random<small> → target</small></span> '
    '<span class="target kept">unchanged, but predicted</span></p>'
)


def artifact_page(path: str, *, samples: int) -> str:
    """Render the facts of `inspect`, with plots; raise as `describe_artifact`."""
    if is_foreign_model(path):
        return _html(foreign_headline(path), [_preformatted(model_lines(Path(path)))])
    manifest = require_manifest(path)
    command, style = manifest.get("command"), ""
    content: list[Section | str]
    if command == "preprocess":
        content = [_split_html(each) for each in summarize_records(path, samples=samples)]
        content += _corpus_of(Path(path), manifest, samples=samples)
    elif command in ("train", "finetune"):
        runs = read_runs([path]) if read_metrics(Path(path) / "metrics.jsonl") else []
        content, style = [plots_html(runs)], plots_style(len(runs))
    else:
        content = [_preformatted(content_lines(manifest, Path(path), samples=samples))]
    tables = {
        "counts": _joined(measured_facts(manifest.get("counts", {}))),
        "metrics": _joined(measured_facts(manifest.get("metrics", {}))),
        "config": _joined(setting_facts(manifest.get("config", {}))),
        "inputs": input_facts(manifest.get("inputs", [])),
        "seconds": _joined(measured_facts(manifest.get("timings", {}))),
        "versions": _joined(setting_facts(manifest.get("versions", {}))),
    }
    kind = "warning" if command in ("vocab", "preprocess", "train") else "note"
    return _html(
        headline(path, manifest),
        [
            *(f'<p class="{kind}">{escape(note)}</p>' for note in manifest.get("notes", [])),
            *content,
            *(f"<h2>{name}</h2>{_table(name, facts)}\n" for name, facts in tables.items() if facts),
        ],
        style=style,
    )


def corpus_page(corpus: Corpus, name: str, *, samples: int) -> str:
    from pipeline.report.corpus.page import corpus_sections  # readers, with Beam

    return _html(f"{name}: corpus", corpus_sections(corpus, samples=samples))


def _corpus_of(folder: Path, manifest: dict[str, Any], *, samples: int) -> list[Section | str]:
    from pipeline.report.corpus.evidence import evidence_tables, sample_sections
    from pipeline.report.corpus.page import corpus_of_records, corpus_sections

    content: list[Section | str] = []
    if "rules" in manifest:
        content += [table for table in evidence_tables(manifest) if table.rows]
        content += sample_sections(manifest, most=samples)
    found = corpus_of_records(folder, manifest)
    if isinstance(found, str):
        return [*content, f'<p class="note">{escape(found)}</p>']
    return [*content, *corpus_sections(found, samples=samples)]


def _html(title: str, content: Iterable[Section | str], *, style: str = "") -> str:
    return html_document(title, content, command="inspect", sheets=("artifact",), style=style)


def _preformatted(lines: list[str]) -> str:
    text = escape("\n".join(lines))
    return f'<pre role="region" tabindex="0" aria-label="content">{text}</pre>' if lines else ""


def _joined(facts: list[tuple[tuple[str, ...], str]]) -> list[tuple[str, str]]:
    return [(" ".join(path), text) for path, text in facts]


def _table(name: str, rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<td>{escape(key)}</td><td>{escape(value)}</td>" for key, value in rows)
    return table_of(name, cells, kind="facts")


def _split_html(summary: SplitSummary) -> str:
    facts = "".join(f"<p>{escape(fact)}</p>" for fact in summary.facts)
    tables = [*summary.histograms]
    if summary.frequent:
        tables.append(
            TableSection(
                title="most frequent tokens",
                columns=(("token", "text"), ("of tokens", "fraction")),
                rows=summary.frequent,
            )
        )
    examples = "".join(map(_example_html, summary.examples))
    if examples:
        examples = f"<div><h3>examples</h3>{_LEGEND}{examples}</div>"
    plots = "".join(section_html(table, level=3) for table in tables)
    return f"<h2>{escape(summary.name)}</h2>{facts}{plots}{examples}"


def _example_html(example: ShownExample) -> str:
    segments = "".join(
        f"<p><b>{escape(name)}</b> {_segment_html(tokens)}</p>" for name, tokens in example.segments
    )
    return f"<h4>{escape(example.title)}</h4>{segments}"


def _segment_html(tokens: list[ShownToken]) -> str:
    shown = map(_token_html, tokens)
    return "".join(each[2:] if each.startswith("##") else f" {each}" for each in shown).lstrip()


def _token_html(token: ShownToken) -> str:
    text = escape(token.text)
    if token.target is None:
        return text
    if token.target == token.text:
        return f'<span class="target kept">{text}</span>'
    kind = "mask" if token.text == "[MASK]" else "random"
    target = escape(token.target)
    return f'<span class="target {kind}">{text}<small> → {target}</small></span>'


def evaluation_page(
    task: Task,
    source: Any,
    results: TaskResults,
    *,
    model: str,
    facts: Sequence[str] = (),
    chosen_by: str | None = None,
) -> str:
    """Render the evaluation of a model; `results` are of `source`'s rows.

    Args:
        facts: sentences on model and rows, without their period.
        chosen_by: the metric that selected the model of its run, if known.
    """
    title = f"{task.declaration.name}: {model} on {source.source}"
    rejected = f", {len(source.rejects):,} rejected" if source.rejects else ""
    lead = [f"{quantity(len(source), 'row')} of {source.source}{rejected}", *facts]
    page = page_function(task.declaration.name)
    made = () if page is None else page(task, source, results.predicted, results)
    content: list[Section | str] = [
        *(f"<p>{escape(sentence_case(line))}.</p>" for line in lead),
        *(f'<p class="warning">{escape(line)}</p>' for line in results.report.warnings),
        _metrics(results.metrics, chosen_by, results.report.details.get("ceiling")) + "\n",
        *(made or [_first_predictions(results.predictions)]),
    ]
    return html_document(title, content, command="evaluate")


def _metrics(
    metrics: Mapping[str, float], chosen_by: str | None, ceiling: Mapping[str, Any] | None
) -> str:
    """A cell for each metric, with what a perfect model could reach, and why no more."""
    chosen = ' class="chose" title="the metric that chose the model of the run"'
    causes = [] if ceiling is None else [each["cause"] for each in ceiling["causes"]]
    cells = "".join(
        f"<div{chosen if name == chosen_by else ''}>"
        f"<dt>{escape(name)}</dt><dd>{value:.4f}"
        f"{_at_best(ceiling, name) if causes else ''}</dd></div>"
        for name, value in metrics.items()
    )
    listed = f'<dl class="metrics">{cells}</dl>'
    if not causes:
        return listed
    why = f"Even a perfect model could not reach more on these rows: {', '.join(causes)}."
    return f'{listed}<p class="note">{escape(why)}</p>'


def _at_best(ceiling: Mapping[str, Any] | None, name: str) -> str:
    if ceiling is None or name != ceiling["metric"]:
        return ""
    return f" <small>of {ceiling['value']:.4f} at best</small>"


def _first_predictions(predictions: Sequence[Mapping[str, Any]]) -> TableSection:
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

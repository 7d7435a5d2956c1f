"""The pages of evaluations, artifacts and corpora."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.base.wording import quantity, shown_number
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.report_sections import (
    MOST_EXAMPLES,
    ExamplesSection,
    HistogramSection,
    MatrixSection,
    PlotSection,
    Section,
    TableSection,
)
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
    require_manifest,
    setting_facts,
)
from pipeline.report.document import (
    breakable,
    folded,
    html_document,
    preformatted,
    sentence_case,
    table_of,
    tiles_html,
)
from pipeline.report.model_page import model_sections
from pipeline.report.records_page import records_sections
from pipeline.report.rows.label_errors_page import label_errors_sections, read_doubted_rows
from pipeline.report.rows.predictions_page import predictions_sections
from pipeline.report.run_page import run_headline
from pipeline.report.runs import plots_html, plots_style, read_runs, training_html
from pipeline.report.vectors_page import vectors_sections
from pipeline.report.vocabulary_page import vocabulary_sections

if TYPE_CHECKING:
    from pipeline.report.corpus.page import Corpus

_MOST_TILES = 8
_DOUBTED = "label_errors.csv"
_COUNTS = {
    "rows_out": "rows",
    "rows_rejected": "rejected",
    "rows_cut": "cut",
    "rows_doubted": "doubtful labels",
}


def artifact_page(path: str, *, samples: int) -> str:
    """Render an artifact: its most important facts first, the raw keys folded away.

    Args:
        path: of an artifact.
        samples: most examples of the content.

    Returns:
        The page.

    Raises:
        UsageError: there is no artifact at `path`.
        InputError: it is unfinished, or a file of it is damaged.
    """
    if is_foreign_model(path):
        return _html(foreign_headline(path), model_sections(Path(path), {}))
    manifest = require_manifest(path)
    command = manifest.get("command")
    style = ""
    if command in ("train", "finetune"):
        style = plots_style(1)
    kind = "warning" if command in ("vocab", "preprocess", "train") else "note"
    return _html(
        headline(path, manifest),
        [
            *(f'<p class="{kind}">{escape(note)}</p>' for note in manifest.get("notes", [])),
            *_content(Path(path), manifest, samples=samples),
            *_raw_facts(manifest),
        ],
        style=style,
    )


def _content(path: Path, manifest: Mapping[str, Any], *, samples: int) -> list[Section | str]:
    """Return the content of an artifact's page, by the command that made it."""
    match manifest.get("command"):
        case "preprocess":
            return records_sections(path, manifest, samples=samples)
        case "train" | "finetune":
            runs = read_runs([str(path)]) if read_metrics(path / "metrics.jsonl") else []
            return [run_headline(manifest), plots_html(runs)]
        case "vocab":
            return vocabulary_sections(path, manifest)
        case "export" | "import-weights":
            return model_sections(path, manifest)
        case "embed":
            return vectors_sections(path, manifest, samples=samples)
        case "score" | "evaluate":
            sections = predictions_sections(path, manifest, samples=samples)
            if sections:
                return [tiles_html(_tiles(manifest)), *sections]
        case "label-errors" if (path / _DOUBTED).is_file():
            doubted = read_doubted_rows(path / _DOUBTED)
            if doubted is not None:
                return [tiles_html(_tiles(manifest)), *label_errors_sections(doubted)]
    lines = content_lines(dict(manifest), path, samples=samples)
    return [tiles_html(_tiles(manifest)), preformatted(lines)]


def _tiles(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return counts of the rows and the first metrics of a job."""
    counts = manifest.get("counts", {})
    tiles = {
        name: f"{counts[key]:,}"
        for key, name in _COUNTS.items()
        if isinstance(counts.get(key), int) and (counts[key] or key == "rows_out")
    }
    metrics = manifest.get("metrics", {})
    return tiles | {
        name.replace("_", " "): shown_number(value)
        for name, value in list(metrics.items())[:_MOST_TILES]
        if isinstance(value, int | float)
    }


def _raw_facts(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Render the rest of a manifest: its inputs, and, folded, every key of the other tables."""
    inputs = input_facts(manifest.get("inputs", []))
    if inputs:
        yield f"<section><h2>Made from</h2>{_table('inputs', inputs)}</section>\n"
    tables = {
        "counts": measured_facts(manifest.get("counts", {})),
        "metrics": measured_facts(manifest.get("metrics", {})),
        "settings": setting_facts(manifest.get("config", {})),
        "seconds": measured_facts(manifest.get("timings", {})),
        "versions": setting_facts(manifest.get("versions", {})),
    }
    rows = "".join(
        folded(f"{sentence_case(name)} ({len(facts):,})", _table(name, _joined(facts)))
        for name, facts in tables.items()
        if facts
    )
    if rows:
        yield f"<section><h2>Manifest</h2>{rows}</section>\n"


def corpus_page(corpus: Corpus, name: str, *, samples: int) -> str:
    """Render a corpus that no job has read yet; see `corpus_sections`."""
    from pipeline.report.corpus.page import corpus_sections  # readers, with Beam

    return _html(f"{name}: corpus", corpus_sections(corpus, samples=samples, is_alone=True))


def _html(title: str, content: Iterable[Section | str], *, style: str = "") -> str:
    return html_document(title, content, command="inspect", sheets=("artifact",), style=style)


def _joined(facts: list[tuple[tuple[str, ...], str]]) -> list[tuple[str, str]]:
    return [(" ".join(path), text) for path, text in facts]


def _table(name: str, rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<td>{escape(key)}</td><td>{escape(value)}</td>" for key, value in rows)
    return table_of(name, cells, kind="facts")


def evaluation_sections(task: Task, source: Any, results: TaskResults) -> list[Section]:
    """Return the task's sections on its results, or the first predictions."""
    page = page_function(task.declaration.name)
    sections = [] if page is None else list(page(task, source, results.predicted, results))
    return sections or [_first_predictions(results.predictions)]


def contents_of(sections: Iterable[Section]) -> str:
    """List the contents of a page: "tables, plots, the most wrong rows"."""
    contents: dict[str, None] = {}
    for section in sections:
        match section:
            case TableSection() | MatrixSection():
                contents["tables"] = None
            case PlotSection() | HistogramSection():
                contents["plots"] = None
            case ExamplesSection() if section.examples:
                contents[f"the {section.title[:1].lower()}{section.title[1:]}"] = None
    return ", ".join(contents)


def evaluation_page(
    task: Task,
    source: Any,
    results: TaskResults,
    *,
    model: str,
    facts: Sequence[str] = (),
    chosen_by: str | None = None,
    sections: Sequence[Section] | None = None,
    run: Path | None = None,
) -> str:
    """Render the evaluation of a model.

    Args:
        task: that the model was fine-tuned for.
        source: the rows of the evaluation.
        results: predictions, metrics and report of these rows.
        model: its path, for the title.
        facts: sentences on model and rows, without their period.
        chosen_by: the metric that selected the model of its run; None if not known.
        sections: the result of `evaluation_sections`; None to call it here.
        run: folder whose curves of training end the page; None for none.
    """
    title = f"{task.declaration.name}: {model} on {source.source}"
    rejected = f", {len(source.rejects):,} rejected" if source.rejects else ""
    lead = [f"{quantity(len(source), 'row')} of {source.source}{rejected}", *facts]
    content: list[Section | str] = [
        *(f"<p>{escape(sentence_case(line))}.</p>" for line in lead),
        *(f'<p class="warning">{escape(line)}</p>' for line in results.report.warnings),
        _metrics(results, chosen_by) + "\n",
        *(evaluation_sections(task, source, results) if sections is None else sections),
    ]
    curves = "" if run is None else training_html(run, chosen_by)
    style = ""
    if curves:
        content.append(curves)
        style = plots_style(1)
    return html_document(title, content, command="evaluate", style=style)


def _metrics(results: TaskResults, chosen_by: str | None) -> str:
    """Render a cell for each metric: its value, error and ceiling; then the causes of a ceiling."""
    ceiling = results.report.details.get("ceiling")
    causes = [] if ceiling is None else [entry["cause"] for entry in ceiling["causes"]]
    cells = ""
    for name in results.metrics:
        chosen = ""
        if name == chosen_by:
            chosen = ' class="chose" title="the metric that chose the model of the run"'
        highest = _at_best(ceiling, name) if causes else ""
        cells += (
            f"<div{chosen}><dt>{breakable(name)}</dt>"
            f"<dd>{escape(results.shown(name))}{highest}</dd></div>"
        )
    metrics = f'<dl class="metrics">{cells}</dl>'
    if not causes:
        return metrics
    reason = f"Even a perfect model could not reach more on these rows: {', '.join(causes)}."
    return f'{metrics}<p class="note">{escape(reason)}</p>'


def _at_best(ceiling: Mapping[str, Any] | None, name: str) -> str:
    """Return the value of a perfect model as HTML; "" unless this metric has a ceiling."""
    if ceiling is None or name != ceiling["metric"]:
        return ""
    return f" <small>of {ceiling['value']:.4f} at best</small>"


def _first_predictions(predictions: Sequence[Mapping[str, Any]]) -> TableSection:
    first = predictions[:MOST_EXAMPLES]
    names = list(dict.fromkeys(name for row in first for name in row))
    return TableSection(
        title="First predictions",
        columns=tuple((name, "text") for name in names),
        rows=[[_as_text(row[name]) if name in row else None for name in names] for row in first],
        note="All are in predictions.jsonl.",
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

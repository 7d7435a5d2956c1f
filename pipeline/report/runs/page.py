"""`report`: runs side by side as one page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.base.wording import quantity
from bert_tf.tasks.base.report_sections import TableSection
from pipeline.report.document import html_document
from pipeline.report.runs.facts import data_facts, overview, records_of, settings
from pipeline.report.runs.plots import plots_html, plots_style
from pipeline.report.runs.run import Run
from pipeline.report.section_html import section_html
from pipeline.report.texts.page import MOST_SHOWN, MOST_WORDS, text_html
from pipeline.report.texts.page import STYLE as TEXTS_STYLE

if TYPE_CHECKING:
    from pipeline.report.texts.reading import Reading

_MOST_NAMED = 3  # in the heading
_STYLE = """
.evaluation { border-left: .25rem solid var(--run); padding-left: .9rem; margin: 1rem 0; }
.evaluation > summary { color: var(--text); font-weight: 600; overflow-wrap: anywhere; }
"""


def runs_page(
    runs: Sequence[Run], texts: Sequence[str] = (), pairs: Sequence[tuple[str, str]] = ()
) -> str:
    """The page as HTML: a color for each run, and a box in the key that hides its curves.

    Args:
        runs: to show.
        texts: each shown as the model of every run reads it.
        pairs: two texts each, read as one sequence and shown likewise.

    Raises:
        UsageError: a text is empty, or a run has kept no model to read it.
        InputError: records or the page of an evaluation are damaged.
    """
    names = ", ".join(run.name for run in runs)
    title = names if len(runs) <= _MOST_NAMED else quantity(len(runs), "run")
    noted = ((run, note) for run in runs for note in (run.manifest or {}).get("notes", []))
    warnings = "".join(
        f'<p class="warning">{escape(run.name)}: {escape(note)}</p>' for run, note in noted
    )
    given = [*((text,) for text in texts), *pairs]
    content = [
        warnings,
        section_html(overview(runs)),
        section_html(settings(runs)),
        plots_html(runs),
        section_html(data_facts(runs)),
        *map(section_html, _histograms(runs)),
        _evaluations(runs),
        _texts(runs, given),
    ]
    return html_document(
        title,
        "".join(content),
        command="report",
        style=plots_style(len(runs)) + _STYLE + (TEXTS_STYLE if given else ""),
    )


def _histograms(runs: Sequence[Run]) -> list[TableSection]:
    """Lengths and targets of the records of pretraining runs, each folder once."""
    folders: dict[Path, Path] = {}
    for run in runs:
        if run.is_pretraining:
            folders.update({folder.resolve(): folder for folder in records_of(run)})
    if not folders:
        return []
    from pipeline.report.records import summarize_records  # TensorFlow, which reads records

    tables = []
    for folder in folders.values():
        summary = summarize_records(folder, samples=0)[0]
        tables += [
            TableSection(
                title=f"{histogram.title[0].upper()}{histogram.title[1:]} of {folder.name}",
                columns=((histogram.title.split(" per ")[0], "text"), ("of records", "fraction")),
                rows=[list(bar) for bar in histogram.bars],
                note=f"{summary.facts[-1][0].upper()}{summary.facts[-1][1:]}.",
            )
            for histogram in summary.histograms
        ]
    return tables


def _evaluations(runs: Sequence[Run]) -> str:
    """What each run's own page shows of its evaluation, one below the other."""
    found = [(number, run, run.evaluation_html()) for number, run in enumerate(runs)]
    shown = "".join(
        f'<details open class="evaluation of-{number}"><summary>{escape(run.name)}</summary>'
        + html.replace("<h2>", "<h3>").replace("</h2>", "</h3>")
        + "</details>\n"
        for number, run, html in found
        if html is not None
    )
    return f"<h2>Evaluation</h2>\n{shown}" if shown else ""


def _texts(runs: Sequence[Run], texts: Sequence[tuple[str, ...]]) -> str:
    if not texts:
        return ""
    from pipeline.report.texts.reading import TextReader  # Keras, to run models

    readings: list[list[tuple[int, str, Reading]]] = [[] for _ in texts]
    for number, run in enumerate(runs):
        reader = TextReader(run.path)  # one model in memory at a time
        for place, text in enumerate(texts):
            reading = reader.read(*text, most=MOST_WORDS, first=MOST_SHOWN)
            readings[place].append((number, run.name, reading))
    return "".join(map(text_html, texts, readings))

"""The page of scored files: labels, probabilities, differences from training, rows to check."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.report_sections import (
    Example,
    ExamplesSection,
    HistogramSection,
    Section,
    TableSection,
)
from bert_tf.tasks.profile.drift import Drift
from pipeline.report.document import html_document, sentence_case

_SHADES = """\
.words { line-height: 2; overflow-wrap: anywhere; } .words span { padding: .1rem .15rem;
  border-radius: .2rem; background: color-mix(in srgb, var(--accent) calc(var(--share) * 70%),
  transparent); } .words .against { background: color-mix(in srgb, var(--warn)
  calc(var(--share) * 70%), transparent); text-decoration: underline dotted; }
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoredFile:
    """Facts on one input to show.

    Attributes:
        source: its name, without folders that all inputs share.
        drift: comparison with the training rows; None if that is unknown.
        scores: int64 [bins], rows by the probability of their prediction; None without any.
    """

    source: str
    drift: Drift | None
    scores: np.ndarray | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExplainedRow:
    """A row with its explanations, as in the scored file.

    Attributes:
        file: its file, if there are several; else "".
        place: its place in the file.
        texts: its text, or list of texts, by input.
        explanations: see `Explanation.as_json`.
    """

    file: str
    place: Place
    texts: Mapping[str, Any]
    explanations: Sequence[Mapping[str, Any]]


def scored_page(
    title: str,
    facts: Sequence[str],
    files: Sequence[ScoredFile],
    uncertain: Sequence[Example],
    explained: Sequence[ExplainedRow],
    earlier: Mapping[str, Drift | None],
) -> str:
    """Render the page.

    Args:
        title: model and output.
        facts: sentences without their period.
        files: the inputs.
        uncertain: the least certain rows of all.
        explained: rows whose predictions are explained.
        earlier: comparison of the files that an update left as they were, by name.
    """
    content: list[Section | str] = [f"<p>{escape(sentence_case(fact))}.</p>" for fact in facts]
    several = len(files) > 1
    for file in files:
        suffix = f" ({file.source})" if several else ""
        content += _file_sections(file, suffix)
    if explained:
        content.append(_explained_html(explained))
    if uncertain:
        content.append(
            ExamplesSection(
                title="Least certain rows",
                examples=uncertain,
                note="By the margin between the two highest probabilities. --label-next chooses "
                "rows that are also unlike each other.",
            )
        )
    if earlier:
        content.append(
            TableSection(
                title="Files of earlier runs",
                columns=(("file", "text"), ("rows", "count"), ("compared with training", "text")),
                rows=[
                    [name, drift and drift.rows, "" if drift is None else str(drift)]
                    for name, drift in sorted(earlier.items())
                ],
                note="They and the model have not changed since.",
            )
        )
    return html_document(title, content, command="score", style=_SHADES)


def _file_sections(file: ScoredFile, suffix: str) -> Iterator[Section | str]:
    """Lay out the facts on a file; titles end in `suffix`."""
    if file.drift is not None:
        kind = "warning" if file.drift.differences else "note"
        yield f'<p class="{kind}">{escape(f"{file.source}: {file.drift}")}.</p>'
        labels = [row for row in file.drift.measured if row.kind == "label"]
        if labels:
            yield TableSection(
                title=f"Predicted labels{suffix}",
                columns=(("label", "text"), ("share", "fraction"), ("of evaluation", "fraction")),
                rows=[[row.name, row.share, row.expected] for row in labels],
                note="Beside the predictions for the evaluation rows of the model.",
            )
    if file.scores is not None and file.scores.sum():
        edges = [f"{edge:g}" for edge in np.linspace(0, 1, len(file.scores) + 1).round(6).tolist()]
        yield HistogramSection(
            title=f"Probability of the predictions{suffix}",
            x_title="probability",
            noun="rows",
            names=[f"{low} to {high}" for low, high in itertools.pairwise(edges)],
            ticks=edges,
            counts=file.scores,
        )
    if file.drift is not None:
        others = [row for row in file.drift.measured if row.kind == "text"]
        if others:
            yield TableSection(
                title=f"Texts{suffix}",
                columns=(("rows that", "text"), ("share", "fraction"), ("in training", "fraction")),
                rows=[[row.name, row.share, row.expected] for row in others],
            )
        if file.drift.differences:
            yield TableSection(
                title=f"Differences from the training rows{suffix}",
                columns=(("rows that", "text"), ("share", "fraction"), ("expected", "fraction")),
                rows=[[row.name, row.share, row.expected] for row in file.drift.differences],
                note="The most certain first.",
            )


def _explained_html(rows: Sequence[ExplainedRow]) -> str:
    note = (
        "The share of each word in the logit: filled words speak for the prediction, underlined "
        "ones against it; the darker, the more. A word shows its number when it is pointed at."
    )
    explanations = "".join(
        _explanation_html(row, entry) for row in rows for entry in row.explanations
    )
    head = f'<h2>Explained rows</h2><p class="note">{note}</p>'
    return f'<section>{head}<ol class="examples">{explanations}</ol></section>\n'


def _explanation_html(row: ExplainedRow, entry: Mapping[str, Any]) -> str:
    texts = row.texts
    largest = max((abs(word["share"]) for word in entry["words"]), default=0.0) or 1.0
    numbers = f"logit {entry['logit']:.3f}, {entry['baseline']:.3f} without words"
    parts = []
    for name, value in texts.items():
        words_of_input = [word for word in entry["words"] if word["input"] == name]
        # Words of a list of texts have the number of their text.
        items = [(None, value)] if isinstance(value, str) else list(enumerate(value))
        for item, text in items:
            words = [word for word in words_of_input if word.get("item") == item]
            if words:
                shaded = _shaded(text, words, largest)
                label = f"<b>{escape(name)}</b> " if len(texts) > 1 else ""
                parts.append(f'<p class="words" dir="auto">{label}{shaded}</p>')
    target = escape(str(entry["target"]))
    where = {
        "file": row.file,
        "line": f"{row.place.line:,}",
        "row": f"{row.place.row:,}",
        "id": row.place.id,
    }
    names = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>"
        for name, value in where.items()
        if value not in ("", "0")
    )
    facts = f"<dl>{names}<div><dt>{target}</dt><dd>{numbers}</dd></div></dl>"
    return f"<li>{facts}{''.join(parts)}</li>"


def _shaded(text: str, words: Sequence[Mapping[str, Any]], largest: float) -> str:
    """Render a text with its words shaded by their shares; `largest` has the full color."""
    pieces = []
    last = 0
    for word in sorted(words, key=lambda word: word["start"]):
        share = word["share"]
        kind = ' class="against"' if share < 0 else ""
        pieces.append(escape(text[last : word["start"]]))
        pieces.append(
            f'<span{kind} style="--share:{abs(share) / largest:.2f}" title="{share:+.4f}">'
            f"{escape(text[word['start'] : word['end']])}</span>"
        )
        last = word["end"]
    return "".join([*pieces, escape(text[last:])])

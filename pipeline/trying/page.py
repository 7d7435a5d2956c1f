"""The page: a form for a row, and predictions under it. It needs no script."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bert_tf.base.errors import BertPipelineError
from bert_tf.base.wording import quantity
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.base.report_sections import CellKind, TableSection
from pipeline.report.document import folded, html_document, section_html, sentence_case
from pipeline.trying.model import Tried, TriedModel

MOST_ROWS = 100
_SMALLEST_FIXED = 1e-4  # below, four decimals say nothing
_HUES = (210, 30, 130, 280, 0, 180, 60, 320)
_OUTSIDE = "O"  # the tag of words that belong to nothing
_WIDE = ' class="wide"'

Span = tuple[int, int, str]
"""First character, the one after the last, and its label; "" if there is only one kind."""


class TryPage:
    """The page of a model."""

    def __init__(self, model: TriedModel):
        self._model = model

    def blank(self) -> str:
        """Return the page with an empty form."""
        return self._page({}, "")

    def refused(self, line: str, texts: Mapping[str, str] | None = None) -> str:
        """Return the page with an error under the form, which keeps what was typed."""
        return self._page(texts or {}, f'<p class="fault">{escape(line)}</p>')

    def answered(self, texts: Mapping[str, str]) -> tuple[str, bool]:
        """Predict the typed texts.

        Args:
            texts: by input name.

        Returns:
            The form with predictions or an error under it, and whether it has predictions.
        """
        began = time.perf_counter()
        try:
            tried = self._model.predict(texts)
        except BertPipelineError as error:
            return self.refused(" ".join(str(error).splitlines()), texts), False
        seconds = time.perf_counter() - began
        return self._page(texts, self._result(tried, seconds)), True

    def _result(self, tried: Tried, seconds: float) -> str:
        declared = self._model.predictor.declared
        noun = "" if declared.probabilities is None else declared.probabilities.noun
        lost = ""
        if tried.lost_tokens:
            lost = (
                f'<p class="warning">too long for the model: '
                f"{quantity(tried.lost_tokens, 'token')} cut off</p>"
            )
        predictions = predictions_html(declared.predictions, tried, noun=noun)
        return f'{lost}{predictions}<p class="note">Computed in {1000 * seconds:,.0f} ms.</p>'

    def _page(self, texts: Mapping[str, str], result: str) -> str:
        """Return the form with what was typed; the first empty input has the focus."""
        predictor = self._model.predictor
        typed = {name: texts.get(name, "") for name in predictor.columns}
        first_to_type = min(typed, key=lambda name: bool(typed[name].strip()))
        areas = "".join(
            _area(name, column, typed[name], has_focus=name == first_to_type)
            for name, column in predictor.columns.items()
        )
        return html_document(
            self._model.name,
            f'<p class="note">{escape(predictor.declared.name)}: '
            f"{escape(predictor.declared.summary)}. Engine: {escape(predictor.engine_name)}.</p>"
            f'<form method="post" accept-charset="utf-8">{areas}'
            f'<button type="submit">Predict</button></form>\n{result}',
            command="try",
            sheets=("try",),
            has_form=True,
        )


def _area(name: str, column: str | list[str], text: str, *, has_focus: bool) -> str:
    columns = [column] if isinstance(column, str) else column
    facts = [f"column {', '.join(columns)}"] if columns != [name] else []
    facts += [] if isinstance(column, str) else ["one per line"]
    more = f" <span>({escape(', '.join(facts))})</span>" if facts else ""
    name = escape(name)
    focus = " autofocus" if has_focus else ""
    # A browser leaves out the line end right after the tag, and no other.
    return (
        f'<label for="{name}">{name.replace("_", " ")}{more}</label>'
        f'<textarea id="{name}" name="{name}" dir="auto"{focus}>\n{escape(text)}</textarea>'
    )


def predictions_html(fields: Sequence[PredictionField], tried: Tried, *, noun: str) -> str:
    """Render the predictions of a row.

    Args:
        fields: predictions of the task; extra ones are behind a click.
        tried: the row.
        noun: names the choices of the model, such as "label".

    Returns:
        Values, the input with its predicted places marked, probabilities, and tables of records.
    """
    main = [field for field in fields if not field.is_extra]
    scalars = [field for field in main if not _is_structured(tried.predictions[field.name])]
    parts = [_scalars(scalars, tried), _marked_places(main, tried)]
    if tried.ranking is not None:
        columns: tuple[tuple[str, CellKind], ...] = ((noun, "text"), ("probability", "fraction"))
        parts.append(_table(f"{noun} probabilities", columns, tried.ranking))
    for field in fields:
        value, title = tried.predictions[field.name], _words(field.name)
        if _is_structured(value):
            body = _structured(title, value, tried.inputs)
        else:
            body = f"<p>{escape(_as_line(field, value))}</p>" if field.is_extra else ""
        if field.is_extra:
            body = folded(title, body)
        parts.append(body)
    return "".join(parts)


def marked_text(text: str, spans: Iterable[Span]) -> str:
    """Render a text with its spans colored and named.

    Args:
        text: of the input.
        spans: in any order; one that overlaps an earlier one, or lies outside the text, is left
            out.

    Returns:
        A paragraph.
    """
    chosen = sorted(spans)
    hues = _hues({name for _, _, name in chosen})
    pieces = []
    place = 0
    for start, end, name in chosen:
        if not place <= start < end <= len(text):
            continue
        label = f"<small>{escape(name)}</small>" if name else ""
        pieces.append(escape(text[place:start]))
        inside = escape(text[start:end])
        pieces.append(f'<mark style="--hue:{hues[name]}">{inside}{label}</mark>')
        place = end
    return f'<p class="marked" dir="auto">{"".join(pieces)}{escape(text[place:])}</p>'


def _hues(names: Iterable[str]) -> dict[str, int]:
    """Return a hue for each name: the same in all texts, as far as eight hues allow."""
    hues: dict[str, int] = {}
    for name in sorted(names):
        first = zlib.crc32(name.encode()) % len(_HUES)
        order = (*_HUES[first:], *_HUES[:first])
        hues[name] = next((hue for hue in order if hue not in hues.values()), order[0])
    return hues


def _scalars(fields: Sequence[PredictionField], tried: Tried) -> str:
    cells = "".join(
        f"<div{_WIDE if field.kind in ('text', 'json') else ''}>"
        f"<dt>{escape(_words(field.name))}</dt>"
        f'<dd dir="auto">{escape(_as_line(field, tried.predictions[field.name]))}</dd></div>'
        for field in fields
    )
    return f'<dl class="metrics">{cells}</dl>' if cells else ""


def _as_line(field: PredictionField, value: Any) -> str:
    """Write a value in a line; small probabilities keep a digit."""
    if value is None or value == "" or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(_as_line(field, each) for each in value)
    if isinstance(value, float):
        if field.kind == "value":
            return f"{value:.6g}"
        return f"{value:.1g}" if 0 < value < _SMALLEST_FIXED else f"{value:.4f}"
    return str(value)


def _is_structured(value: Any) -> bool:
    """Return whether a value is a record, or a list of records or lists."""
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict | list) for each in value)
    )


def _structured(title: str, value: Any, inputs: Mapping[str, Any]) -> str:
    """Render records as a table, and above it the input with their spans marked."""
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return _marked_spans(value, inputs) + _records(title, value)
    if isinstance(value, list) and all(map(_is_structured, value)):
        numbered = enumerate(value, start=1)
        return "".join(
            _structured(f"{title}, {number} of {len(value)}", each, inputs)
            for number, each in numbered
        )
    return f"<p>{escape(json.dumps(value, ensure_ascii=False))}</p>"


def _records(title: str, records: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = tuple((name, _kind([record.get(name) for record in records])) for name in names)
    return _table(title, columns, [[record.get(name) for name in names] for record in records])


def _kind(values: Sequence[Any]) -> CellKind:
    """Return how to write a column, by the values in it."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int) for value in known):
        return "count"
    if known and all(isinstance(value, int | float) for value in known):
        return "fraction" if all(0 <= value <= 1 for value in known) else "number"
    return "text"


def _table(
    title: str, columns: tuple[tuple[str, CellKind], ...], rows: Sequence[Sequence[Any]]
) -> str:
    note = f"The first {MOST_ROWS} of {len(rows):,}." if len(rows) > MOST_ROWS else ""
    return section_html(
        TableSection(title=sentence_case(title), columns=columns, rows=rows[:MOST_ROWS], note=note)
    )


def _marked_places(fields: Sequence[PredictionField], tried: Tried) -> str:
    """Mark the input that a predicted text was taken from, found by its two places."""
    places = [tried.predictions[field.name] for field in fields if field.kind == "place"]
    texts = [tried.predictions[field.name] for field in fields if field.kind == "text"]
    if len(places) != 2 or None in places:
        return ""
    start, end = places
    for text in _texts_of(tried.inputs):
        if text[start:end] and text[start:end] in texts:
            return marked_text(text, [(start, end, "")])
    return ""


def _marked_spans(records: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> str:
    """Mark the spans of records in the input they are of; "" if they are not spans of any."""
    spans = []
    for record in records:
        name = record.get("label", record.get("tag"))
        if name is None or not {"start", "end"} <= record.keys():
            return ""
        spans.append((record["start"], record["end"], str(name)))
    for text in _texts_of(inputs):
        if all(
            text[start:end] == record.get("text", text[start:end])
            for (start, end, _), record in zip(spans, records, strict=True)
        ):
            inside = [(start, end, name) for start, end, name in spans if name != _OUTSIDE]
            return marked_text(text, inside)
    return ""


def _texts_of(inputs: Mapping[str, Any]) -> list[str]:
    """Return the longest first, since spans are rather in a context than in a question."""
    texts = [value for value in inputs.values() if isinstance(value, str)]
    return sorted(texts, key=len, reverse=True)


def _words(name: str) -> str:
    """Turn `predicted_null_odds` into "null odds"."""
    return name.removeprefix("predicted_").replace("_", " ")

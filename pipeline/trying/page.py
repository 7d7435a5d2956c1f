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
_SMALLEST_FIXED = 1e-4  # four decimals of smaller numbers are zeros
_HUES = (210, 30, 130, 280, 0, 180, 60, 320)  # degrees, of the colors of labels
_OUTSIDE = "O"  # the tag of words that belong to nothing
_WIDE = ' class="wide"'

Span = tuple[int, int, str]
"""(start, end, label) of a span in characters; the label is "" if there is only one kind."""


class TryPage:
    """The page of a model."""

    def __init__(self, model: TriedModel):
        self._model = model

    def blank(self) -> str:
        """Return the page with an empty form."""
        return self._page({}, "")

    def refused(self, line: str, texts: Mapping[str, str] | None = None) -> str:
        """Return the page with an error under the form, which keeps the typed texts."""
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
        """Return the form with the typed texts; the first empty input has the focus."""
        predictor = self._model.predictor
        typed = {name: texts.get(name, "") for name in predictor.columns}
        # The first one if none is empty.
        first_empty = min(typed, key=lambda name: bool(typed[name].strip()))
        areas = "".join(
            _area(name, column, typed[name], has_focus=name == first_empty)
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
    """Render the label and field of an input."""
    columns = [column] if isinstance(column, str) else column
    facts = []
    if columns != [name]:
        facts.append(f"column {', '.join(columns)}")
    if not isinstance(column, str):
        facts.append("one per line")
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
        value = tried.predictions[field.name]
        title = _words(field.name)
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
    """Render values in a line each, side by side if they are short."""
    cells = ""
    for field in fields:
        width = _WIDE if field.kind in ("text", "json") else ""
        value = _as_line(field, tried.predictions[field.name])
        cells += (
            f"<div{width}><dt>{escape(_words(field.name))}</dt>"
            f'<dd dir="auto">{escape(value)}</dd></div>'
        )
    return f'<dl class="metrics">{cells}</dl>' if cells else ""


def _as_line(field: PredictionField, value: Any) -> str:
    """Write a value in a line; small probabilities keep a digit."""
    if value is None or value == "" or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(_as_line(field, item) for item in value)
    if isinstance(value, float):
        if field.kind == "value":
            return f"{value:.6g}"
        return f"{value:.1g}" if 0 < value < _SMALLEST_FIXED else f"{value:.4f}"
    return str(value)


def _is_structured(value: Any) -> bool:
    """Return whether a value is a record, or a list with records or lists."""
    if isinstance(value, list):
        return any(isinstance(item, dict | list) for item in value)
    return isinstance(value, dict)


def _structured(title: str, value: Any, inputs: Mapping[str, Any]) -> str:
    """Render records as a table, and above it the input with their spans marked."""
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return _marked_spans(value, inputs) + _records(title, value)
    if isinstance(value, list) and all(map(_is_structured, value)):
        return "".join(
            _structured(f"{title}, {number} of {len(value)}", item, inputs)
            for number, item in enumerate(value, start=1)
        )
    return f"<p>{escape(json.dumps(value, ensure_ascii=False))}</p>"


def _records(title: str, records: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = tuple((name, _kind([record.get(name) for record in records])) for name in names)
    return _table(title, columns, [[record.get(name) for name in names] for record in records])


def _kind(values: Sequence[Any]) -> CellKind:
    """Return the kind of a column, by its values."""
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
    """Mark a predicted text in the input that has it at its two places; "" without places."""
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
    """Mark the spans of records in the input that has their texts; "" if no input has them."""
    spans = []
    for record in records:
        name = record.get("label", record.get("tag"))
        if name is None or not {"start", "end"} <= record.keys():
            return ""
        spans.append((record["start"], record["end"], str(name)))
    for text in _texts_of(inputs):
        parts = [text[start:end] for start, end, _ in spans]
        named = zip(parts, records, strict=True)
        if all(part == record.get("text", part) for part, record in named):
            inside = [span for span in spans if span[2] != _OUTSIDE]
            return marked_text(text, inside)
    return ""


def _texts_of(inputs: Mapping[str, Any]) -> list[str]:
    """Return the input texts, the longest first: spans are mostly in contexts, not questions."""
    texts = [value for value in inputs.values() if isinstance(value, str)]
    return sorted(texts, key=len, reverse=True)


def _words(name: str) -> str:
    """Turn `predicted_null_odds` into "null odds"."""
    return name.removeprefix("predicted_").replace("_", " ")

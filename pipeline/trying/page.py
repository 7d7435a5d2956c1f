"""The page: a form for a row, and under it what the model predicts. It needs no script."""

from __future__ import annotations

import time
from collections.abc import Mapping
from html import escape

from bert_tf.base.errors import BertPipelineError
from bert_tf.base.wording import quantity
from pipeline.report.document import html_document
from pipeline.trying.model import ShownInput, Tried, TriedModel
from pipeline.trying.predictions_html import STYLE, predictions_html

_STYLE = """
form { margin: 1rem 0; } label { display: block; margin: .8rem 0 .25rem; font-weight: 600; }
label span { font-weight: 400; color: var(--soft); }
textarea { display: block; width: 100%; min-height: 4.5rem; padding: .5rem .6rem; font: inherit;
  field-sizing: content; max-height: 60vh; resize: vertical; color: inherit;
  background: var(--raised); border: 1px solid var(--soft); border-radius: .4rem; }
button { margin-top: .8rem; padding: .5rem 1.4rem; font: inherit; font-weight: 600;
  color: var(--ground); background: var(--accent); border: 0; border-radius: .4rem;
  cursor: pointer; } button:focus-visible { outline-offset: 2px; }
.fault { color: var(--warn); font-weight: 600; }
"""


class TryPage:
    """Everything that the server shows.

    Args:
        model: what is tried.
    """

    def __init__(self, model: TriedModel):
        self._model = model

    def blank(self) -> str:
        """The empty form."""
        return self._page({}, "")

    def refused(self, line: str, texts: Mapping[str, str] | None = None) -> str:
        """The form with a line that says what was wrong.

        Args:
            line: that line, as text.
            texts: what was typed, by input name.
        """
        return self._page(texts or {}, f'<p class="fault">{escape(line)}</p>')

    def answered(self, texts: Mapping[str, str]) -> tuple[str, bool]:
        """The form with predictions under it, or what is wrong; whether there are predictions.

        Args:
            texts: what was typed, by input name.
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
                f'<p class="warning">the model does not read '
                f"{quantity(tried.lost_tokens, 'token')} of this: it is too long</p>"
            )
        shown = predictions_html(declared.predictions, tried, noun=noun)
        return f'{lost}{shown}<p class="note">Computed in {1000 * seconds:,.0f} ms.</p>'

    def _page(self, texts: Mapping[str, str], result: str) -> str:
        predictor = self._model.predictor
        typed = {each: texts.get(each.name, "") for each in self._model.inputs}
        first_to_type = min(typed, key=lambda each: bool(typed[each].strip()))
        areas = "".join(
            _area(each, text, has_focus=each == first_to_type) for each, text in typed.items()
        )
        return html_document(
            self._model.name,
            f'<p class="note">{escape(predictor.declared.name)}: '
            f"{escape(predictor.declared.summary)}. Engine: {escape(predictor.engine_name)}.</p>"
            f'<form method="post" accept-charset="utf-8">{areas}'
            f'<button type="submit">Predict</button></form>\n{result}',
            command="try",
            style=_STYLE + STYLE,
            has_form=True,
        )


def _area(shown: ShownInput, text: str, *, has_focus: bool) -> str:
    facts = [f"column {shown.column}"] if shown.column != shown.name else []
    facts += ["one per line"] if shown.is_list else []
    more = f" <span>({escape(', '.join(facts))})</span>" if facts else ""
    name = escape(shown.name)
    focus = " autofocus" if has_focus else ""
    # A browser leaves out the line end right after the tag, and no other.
    return (
        f'<label for="{name}">{name.replace("_", " ")}{more}</label>'
        f'<textarea id="{name}" name="{name}" dir="auto"{focus}>\n{escape(text)}</textarea>'
    )

"""Texts as a model reads them, on the page of its run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from pipeline.report.section_html import scrolling
from pipeline.report.texts.attention_svg import attention_svg, attention_words

if TYPE_CHECKING:  # Keras, which pages without texts need not load
    from pipeline.report.texts.predictions import Prediction
    from pipeline.report.texts.reading import Guess, Reading

MOST_SHOWN = 40
MOST_WORDS = 5
STYLE = """
.maps { display: grid; gap: .6rem 1rem; grid-template-columns: repeat(auto-fill, minmax(7rem, 1fr));
  margin: .6rem 0; } .maps figure { margin: 0; cursor: pointer; min-width: 0; }
.maps figcaption { color: var(--soft); font-size: .8rem; overflow-wrap: anywhere; }
svg.attention { display: block; max-width: none; font-size: .6px; }
svg.attention .frame, svg.attention .segments { stroke: var(--line); stroke-width: 1px;
  vector-effect: non-scaling-stroke; fill: none; }
svg.attention .cells path { fill: var(--run, var(--accent)); }
.maps .labels { display: none; }
.maps figure:focus { grid-column: 1 / -1; } .maps figure:focus .labels { display: inline; }
.maps figure:focus svg { --room: clamp(2.5rem, 14vw, 5.5rem); overflow: visible;
  width: min(32rem, 100% - 1.5 * var(--room));
  margin: var(--room) calc(var(--room) / 2) .4rem var(--room); }
.text-of-run { border-left: .25rem solid var(--run, var(--line)); padding-left: .9rem; }
.bars-of-words { white-space: nowrap; } .bars-of-words span { margin-right: 1rem; }
.bars-of-words small { color: var(--soft); }
"""
_MAPS_NOTE = (
    "A row for each token, a column for each token that it attends to; the stronger the color, the "
    "more. Click or focus a map (Tab) to see it large and with its tokens."
)
_PAIR_NOTE = " Lines divide the texts: upper right the first attends to the second."


def text_html(texts: Sequence[str], readings: Sequence[tuple[int, str, Reading]]) -> str:
    """A text, or a pair, as several models read it.

    Args:
        texts: one or two, as they were given.
        readings: number and name of each run, and what its model makes of the text.
    """
    shown = "".join(
        f'<details open class="text-of-run of-{number}"><summary>{escape(name)}</summary>'
        f"{_reading_html(reading)}</details>"
        for number, name, reading in readings
    )
    title = "Text" if len(texts) == 1 else "Pair of texts"
    given = "".join(f'<p dir="auto">{escape(text)}</p>' for text in texts)
    return f"<section><h2>{title}</h2>{given}{shown}</section>\n"


def _reading_html(reading: Reading) -> str:
    notes = []
    if reading.is_cut:
        what = "text is" if reading.second_start is None else "pair is"
        notes.append(f"The {what} longer than the model reads; the rest of it is left out.")
    if len(reading.tokens) > MOST_SHOWN:
        notes.append(f"Shown are the first {MOST_SHOWN} of {len(reading.tokens):,} tokens.")
    note = "".join(f'<p class="warning">{each}</p>' for each in notes)
    parts = (_predictions_html, _guesses_html, _neighbors_html, _maps_html)
    return note + "".join(part(reading) for part in parts)


def _predictions_html(reading: Reading) -> str:
    if not reading.predictions:
        return ""
    rows = "".join(
        f'<tr><th scope="row" dir="auto">{escape(each.name)}</th>{_value_cell(each)}</tr>'
        for each in reading.predictions
    )
    return f"<h3>Predicted</h3>{scrolling('Predicted', f'<table><tbody>{rows}</tbody></table>')}"


def _value_cell(prediction: Prediction) -> str:
    if prediction.probability is not None:
        return _probability_cell(prediction.probability)
    value = prediction.value
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f'<td dir="auto">{escape(words)}</td>'


def _probability_cell(probability: float) -> str:
    return (
        '<td class="number fraction"><span class="bar" '
        f'style="width:{100 * probability:.1f}%"></span><span>{probability:.4f}</span></td>'
    )


def _guesses_html(reading: Reading) -> str:
    if reading.guesses is None:
        return ""
    # Masks are what a text was given for: they are shown wherever they are.
    guesses = [
        guess
        for guess in reading.guesses
        if guess.probability is None or guess.position < MOST_SHOWN
    ]
    if not guesses:
        return ""
    is_given = guesses[0].probability is not None
    title = "Predicted where each token is masked by itself" if is_given else "Predicted at [MASK]"
    head = '<th scope="col">token</th>'
    if is_given:
        head += '<th scope="col" class="number">its probability</th>'
    rows = "".join(_guess_row(guess, reading) for guess in guesses)
    table = (
        f'<table><thead><tr>{head}<th scope="col">likeliest</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    return f"<h3>{title}</h3>{scrolling(title, table)}"


def _guess_row(guess: Guess, reading: Reading) -> str:
    own = ""
    if guess.probability is not None:
        own = _probability_cell(guess.probability)
    token = escape(reading.tokens[guess.position])
    return f'<tr><th scope="row">{token}</th>{own}{_words_cell(guess.candidates)}</tr>'


def _words_cell(words: Sequence[tuple[str, float]]) -> str:
    shown = " ".join(
        f"<span>{escape(word)} <small>{value:.2f}</small></span>" for word, value in words
    )
    return f'<td class="bars-of-words">{shown}</td>'


def _neighbors_html(reading: Reading) -> str:
    title = "Nearest words"
    rows = "".join(
        f'<tr><th scope="row">{escape(reading.tokens[position])}</th>{_words_cell(words)}</tr>'
        for position, words in reading.neighbors.items()
        if position < MOST_SHOWN
    )
    table = (
        '<table><thead><tr><th scope="col">token</th><th scope="col">nearest</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    note = (
        '<p class="note">By the cosine of their word embeddings; ## continues a word. Without '
        "context: the same in every text.</p>"
    )
    return f"<h3>{title}</h3>{note}{scrolling(title, table)}"


def _maps_html(reading: Reading) -> str:
    size = min(len(reading.tokens), MOST_SHOWN)
    tokens = reading.tokens[:size]
    layers = []
    for number, heads in enumerate(reading.attention):
        maps = [("mean of the heads", heads.mean(axis=0))]
        maps += [(f"head {head + 1}", each) for head, each in enumerate(heads)]
        figures = "".join(
            _figure(f"layer {number + 1}, {name}", name, each, reading, tokens)
            for name, each in maps
        )
        opened = " open" if number == 0 else ""
        layers.append(
            f"<details{opened}><summary>layer {number + 1}</summary>"
            f'<div class="maps">{figures}</div></details>'
        )
    pair = "" if reading.second_start is None else _PAIR_NOTE
    note = f'<p class="note">{_MAPS_NOTE}{pair}</p>'
    return f"<h3>Attention</h3>{note}{''.join(layers)}"


def _figure(
    name: str, title: str, attention: np.ndarray, reading: Reading, shown: Sequence[str]
) -> str:
    words = attention_words(attention, reading.tokens)
    picture = attention_svg(
        attention[: len(shown), : len(shown)],
        shown,
        f"{name}: {words}",
        second_start=reading.second_start,
    )
    return (
        f'<figure tabindex="0">{picture}'
        f"<figcaption>{escape(title)}: {escape(words)}</figcaption></figure>"
    )

"""The section of a run's page with texts as its model reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from pipeline.report.document import folded, heading, shortened, table_cell, table_of

if TYPE_CHECKING:
    from pipeline.report.texts_reading import Prediction, Reading

_LEVELS = 8  # strengths of the color of attention
_LONGEST_LABEL = 12  # characters
MOST_SHOWN = 40  # tokens of a text
MOST_WORDS = 5  # guesses and neighbors of a token
_MAPS_NOTE = (
    "A row for each token, a column for each token that it attends to; the stronger the color, the "
    "more. Click or focus a map (Tab) to see it large and with its tokens."
)
_PAIR_NOTE = " Lines divide the texts: upper right the first attends to the second."


def text_html(texts: Sequence[str], readings: Sequence[tuple[int, str, Reading]]) -> str:
    """Render a text or a pair as models read it.

    Args:
        texts: one, or the two of a pair.
        readings: number, name and reading of each run.

    Returns:
        A section: predictions, guesses, nearest words and attention of each run.
    """
    read_html = "".join(
        folded(name, _reading_html(reading), f' open class="text-of-run of-{number}"')
        for number, name, reading in readings
    )
    title = "Text" if len(texts) == 1 else "Pair of texts"
    paragraphs = "".join(f'<p dir="auto">{escape(text)}</p>' for text in texts)
    return f"<section><h2>{title}</h2>{paragraphs}{read_html}</section>\n"


def _reading_html(reading: Reading) -> str:
    """Render a reading, with a note where the page shows less than the text."""
    notes = []
    if reading.is_cut:
        noun = "text" if reading.second_start is None else "pair"
        notes.append(f"The {noun} is longer than the model's maximum length and was cut.")
    if len(reading.tokens) > MOST_SHOWN:
        notes.append(f"These are the first {MOST_SHOWN} of {len(reading.tokens):,} tokens.")
    note = "".join(f'<p class="warning">{line}</p>' for line in notes)
    parts = (_predictions_html, _guesses_html, _neighbors_html, _maps_html)
    return note + "".join(part(reading) for part in parts)


def _predictions_html(reading: Reading) -> str:
    if not reading.predictions:
        return ""
    rows = (
        f'<th scope="row" dir="auto">{escape(prediction.name)}</th>{_value_cell(prediction)}'
        for prediction in reading.predictions
    )
    return f"<h3>Predicted</h3>{table_of('Predicted', rows)}"


def _value_cell(prediction: Prediction) -> str:
    if prediction.probability is not None:
        return table_cell(prediction.probability, "fraction")
    value = prediction.value
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f'<td dir="auto">{escape(words)}</td>'


def _guesses_html(reading: Reading) -> str:
    """Render the model's guesses for masked tokens, if it has a head for them."""
    if reading.guesses is None:
        return ""
    # The user gave the text for its masks, so they are shown at any position.
    guesses = [
        guess
        for guess in reading.guesses
        if guess.probability is None or guess.position < MOST_SHOWN
    ]
    if not guesses:
        return ""
    title = "Predicted at [MASK]"
    head = heading("token") + heading("most likely")
    if guesses[0].probability is not None:
        title = "Predicted with each token masked, one at a time"
        head = heading("token") + heading("its probability", "fraction") + heading("most likely")
    rows = []
    for guess in guesses:
        cells = [f'<th scope="row">{escape(reading.tokens[guess.position])}</th>']
        if guess.probability is not None:
            cells.append(table_cell(guess.probability, "fraction"))
        cells.append(_words_cell(guess.candidates))
        rows.append("".join(cells))
    return f"<h3>{title}</h3>{table_of(title, rows, head=head)}"


def _words_cell(words: Sequence[tuple[str, float]]) -> str:
    """Render words with their values in small print."""
    spans = " ".join(
        f"<span>{escape(word)} <small>{value:.2f}</small></span>" for word, value in words
    )
    return f'<td class="bars-of-words">{spans}</td>'


def _neighbors_html(reading: Reading) -> str:
    title = "Nearest words"
    rows = (
        f'<th scope="row">{escape(reading.tokens[position])}</th>{_words_cell(words)}'
        for position, words in reading.neighbors.items()
        if position < MOST_SHOWN
    )
    head = heading("token") + heading("nearest")
    note = (
        '<p class="note">By cosine similarity of word embeddings, so the same in every '
        "text; ## continues a word.</p>"
    )
    return f"<h3>{title}</h3>{note}{table_of(title, rows, head=head)}"


def _maps_html(reading: Reading) -> str:
    """Render the attention of all layers; the first one is open."""
    size = min(len(reading.tokens), MOST_SHOWN)
    tokens = reading.tokens[:size]
    layers = []
    for number, heads in enumerate(reading.attention):
        maps = [("mean of the heads", heads.mean(axis=0))]
        maps += [(f"head {head + 1}", attention) for head, attention in enumerate(heads)]
        figures = "".join(
            _figure(f"layer {number + 1}, {name}", name, attention, reading, tokens)
            for name, attention in maps
        )
        opened = " open" if number == 0 else ""
        layers.append(folded(f"layer {number + 1}", f'<div class="maps">{figures}</div>', opened))
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


def attention_svg(
    attention: np.ndarray, tokens: Sequence[str], name: str, *, second_start: int | None = None
) -> str:
    """Draw attention.

    Args:
        attention: float [query, key].
        tokens: their names.
        name: for screen readers.
        second_start: first token of the second text of a pair; lines divide the texts.

    Returns:
        SVG: cells in eight strengths of a color, so that a map is a path for each strength.
    """
    size = len(tokens)
    levels = np.minimum((attention * _LEVELS + 0.5).astype(np.int64), _LEVELS)
    paths = "".join(
        f'<path fill-opacity="{level / _LEVELS:g}" d="{_cells(levels == level)}"/>'
        for level in np.unique(levels[levels > 0]).tolist()
    )
    lines = ""
    if second_start is not None and second_start < size:
        lines = f'<path class="segments" d="M0 {second_start}h{size}M{second_start} 0v{size}"/>'
    labels = ""
    for place, token in enumerate(tokens):
        label = shortened(token, _LONGEST_LABEL)
        labels += (
            f'<text x="-.3" y="{place + 0.75:g}" text-anchor="end">{label}</text>'
            f'<text transform="translate({place + 0.75:g} -.3) rotate(-60)">{label}</text>'
        )
    return (
        f'<svg class="attention" viewBox="0 0 {size} {size}" role="img" '
        f'aria-label="{escape(name)}">'
        f'<path class="frame" d="M0 0h{size}v{size}h-{size}z"/>'
        f'<g class="cells">{paths}</g>{lines}<g class="labels">{labels}</g></svg>'
    )


def attention_words(attention: np.ndarray, tokens: Sequence[str]) -> str:
    """Name the most frequent target of attention, for those who cannot see the map.

    The patterns are those of Clark et al. 2019, "What does BERT look at?", section 3.

    Args:
        attention: float [query, key].
        tokens: their names.

    Returns:
        Such as "83% on [SEP]".
    """
    size = len(tokens)
    shares = {
        "the token itself": np.trace(attention) / size,
        "the token before": np.trace(attention, offset=-1) / (size - 1),
        "the token after": np.trace(attention, offset=1) / (size - 1),
        "[CLS]": attention[:, 0].mean(),
        "[SEP]": attention[:, np.array(tokens) == "[SEP]"].sum(axis=1).mean(),
    }
    name = max(shares, key=lambda name: shares[name])
    return f"{shares[name]:.0%} on {name}"


def _cells(chosen: np.ndarray) -> str:
    """Return an SVG path around the chosen cells, bool [query, key], a rectangle for each run."""
    parts = []
    for row, columns in enumerate(chosen):
        changes = np.flatnonzero(np.diff(np.pad(columns.astype(np.int8), 1)))
        for begin, end in zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True):
            parts.append(f"M{begin} {row}h{end - begin}v1h{begin - end}z")
    return "".join(parts)

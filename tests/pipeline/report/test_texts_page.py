"""A text on the page of runs: well-formed, bounded, and usable by the keyboard in a browser."""

import dataclasses
import re

import numpy as np
import pytest
from behavior.browser import opened_browser
from behavior.pages import check_page

from pipeline.report.document import html_document
from pipeline.report.runs import plots_style
from pipeline.report.texts_page import MOST_SHOWN, attention_svg, attention_words, text_html
from pipeline.report.texts_reading import Guess, Prediction, Reading


def reading(size, *, guesses=True):
    attention = np.random.default_rng(0).dirichlet(np.full(size, 0.3), size=(2, 3, size))
    tokens = ["[CLS]", *("<i>" if place % 2 else "walk" for place in range(size - 2)), "[SEP]"]
    return Reading(
        tokens=tokens,
        is_cut=size > MOST_SHOWN,
        attention=attention.astype(np.float32),
        neighbors={1: [("walked", 0.71), ("<b>", 0.5)]},
        guesses=[Guess(position=2, candidates=[("on", 0.5)], probability=0.125)]
        if guesses
        else None,
    )


def page_of(*readings):
    runs = [(number, f"run {number}", each) for number, each in enumerate(readings)]
    content = text_html(["a <text>"], runs)
    style = plots_style(len(runs))
    return html_document("runs", content, command="report", sheets=("texts",), style=style)


def test_everything_is_said_and_nothing_is_markup():
    page = check_page(page_of(reading(8), reading(8, guesses=False)))
    shown = " ".join(page.text)
    for words in ("a <text>", "run 1", "walked", "0.71", "0.1250", "head 3", "layer 2", "<i>"):
        assert words in shown
    assert not {"i", "b", "text>"} & set(page.elements)
    assert page.elements.count("svg") == 2 * 2 * 4, "of every head, and of their mean"
    assert shown.count("Predicted with each token masked") == 1


def test_a_pair_has_both_texts_lines_between_them_and_what_is_predicted():
    given = [
        Prediction(name="predicted_label", value="<yes>"),
        Prediction(name="predicted_start", value=None),
        Prediction(name="<no>", probability=0.25),
    ]
    read = dataclasses.replace(reading(8), second_start=3, predictions=given)
    drawn = text_html(["a", "<b>"], [(0, "run", read)])
    shown = " ".join(check_page(html_document("runs", drawn, command="report")).text)
    for words in ("Pair of texts", "<b>", "predicted_label", "<yes>", "null", "<no>", "0.2500"):
        assert words in shown
    assert drawn.count('class="segments" d="M0 3h8M3 0v8"') == 2 * 4
    assert 'class="segments"' not in text_html(["a"], [(0, "run", reading(8))])


def test_a_long_text_is_bounded():
    page = check_page(page_of(reading(200)))
    shown = " ".join(page.text)
    assert f"the first {MOST_SHOWN} of 200 tokens" in shown
    assert "longer than the model's maximum length" in shown
    assert page.elements.count("text") == 2 * MOST_SHOWN * 2 * 4


def test_predictions_at_masks_are_shown_wherever_they_are():
    late = Guess(position=MOST_SHOWN + 5, candidates=[("late", 0.5)], probability=None)
    for guesses, is_shown in (([late], True), ([], False)):
        shown = dataclasses.replace(reading(MOST_SHOWN + 10), guesses=guesses)
        text = " ".join(check_page(page_of(shown)).text)
        assert ("Predicted at [MASK]" in text, "late" in text) == (is_shown, is_shown)


@pytest.mark.slow  # starts a browser
def test_a_map_is_large_while_it_has_the_focus(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page_of(reading(12)))
    width = "document.querySelector('.maps figure:focus svg').getBoundingClientRect().width"
    with opened_browser(tmp_path) as browser:
        for window, scheme in ((1000, "light"), (360, "dark")):
            browser.show_as(width=window, scheme=scheme)
            browser.open(path.as_uri())
            small = browser.value(
                "document.querySelector('.maps svg').getBoundingClientRect().width"
            )
            for _ in range(20):
                browser.press("Tab")
                if browser.value("document.activeElement.tagName") == "FIGURE":
                    break
            browser.screenshot(tmp_path / f"{window}.png")
            assert browser.value(width) > 1.5 * small
            assert browser.value("document.documentElement.scrollWidth") <= window
            label = "getComputedStyle(document.querySelector('{} .labels')).display"
            assert browser.value(label.format(".maps figure:focus")) == "inline"
            assert browser.value(label.format(".maps figure:not(:focus)")) == "none"
            assert browser.requested() == [path.as_uri()]
            assert browser.complaints() == []


# The picture of a head has the cells of its attention, whatever the tokens are called.


def test_every_cell_is_drawn_with_its_strength():
    drawn = np.random.default_rng(2)
    attention = drawn.dirichlet(np.full(9, 0.2), size=9)
    html = attention_svg(attention, [f"<{place}>" for place in range(9)], 'a "name"')
    assert "<0>" not in html
    shown = np.zeros((9, 9))
    for opacity, path in re.findall(r'fill-opacity="([\d.]+)" d="([^"]+)"', html):
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", path):
            cells = shown[int(y), int(x) : int(x) + int(width)]
            assert not cells.any(), "no cell is drawn twice"
            cells[:] = float(opacity)
    assert np.abs(shown - attention).max() <= 1 / 16 + 1e-9


def test_the_strongest_pattern_is_named():
    tokens = ["[CLS]", "a", "b", "c", "[SEP]"]
    assert attention_words(np.eye(5), tokens) == "100% on the token itself"
    before = np.eye(5, k=-1)
    before[0, 0] = 1.0
    assert attention_words(before, tokens) == "100% on the token before"
    last = np.zeros((5, 5))
    last[:, -1] = 1.0
    assert attention_words(last, tokens) == "100% on [SEP]"
    both = np.zeros((5, 5))
    both[:, [2, 4]] = 0.5
    assert attention_words(both, ["[CLS]", "a", "[SEP]", "b", "[SEP]"]) == "100% on [SEP]"

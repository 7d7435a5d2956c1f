"""The form as people use it: typed into and pressed in a real browser."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow  # starts a browser

TAGS = {
    "task": "tagging",
    "columns": {"text": "text", "tokens": None, "tags": None, "entities": "entities"},
    "labels": ["O", "B-place"],
}
TOPICS = {
    "task": "classification",
    "labels": ["fun", "news"],
    "columns": {"text": "body", "text_pair": "reply", "label": "label"},
}
TOPIC = {"predicted_label": "news", "predicted_score": 0.75, "probabilities": [0.25, 0.75]}
TEXT = 'Grüße <b>"aus" Rom</b> & 100% שלום 😀\n\n  two  spaces'
SHOWN = "document.body.innerText"
TYPED = "[...document.querySelectorAll('textarea')].map(each => each.value)"


@pytest.fixture
def tried(tried_model, served):
    """Yield a model of two texts, and the server of its page."""
    model = tried_model(TOPICS, TOPIC)
    with served(model) as server:
        yield model, server


def send(browser, *texts):
    """Types texts into the fields, from where the cursor is, and sends the form, all by keys."""
    browser.wait_until("document.activeElement.tagName == 'TEXTAREA'")  # after it is loaded
    for place, text in enumerate(texts):
        if place:
            browser.press("Tab")
        browser.type(text)
    browser.press("Tab")
    browser.events.clear()
    browser.press("Enter")
    browser.wait_for_load()


def test_a_text_is_typed_and_sent_by_the_keyboard_alone(browser, tried):
    model, server = tried
    browser.open(server.url)
    send(browser, TEXT, "\nand a reply")
    assert model.predictor.engine.given == [{"text": [TEXT], "text_pair": ["\nand a reply"]}]
    assert browser.value(TYPED) == [TEXT, "\nand a reply"], "what was typed stays as it is"
    shown = browser.value(SHOWN)
    for words in ("news", "0.7500", "0.2500", "Computed in"):
        assert words in shown
    assert browser.complaints() == []
    assert {address.split("?")[0] for address in browser.requested()} == {server.url}


def test_bars_are_as_long_as_probabilities(browser, tried):
    _, server = tried
    browser.open(server.url)
    send(browser, "a", "b")
    widths = browser.value(
        "[...document.querySelectorAll('.fraction .bar')].map(bar =>"
        "bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width)"
    )
    assert 0.9 < sum(widths) <= 1
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.01)


def test_a_field_left_empty_is_said_and_can_be_filled(browser, tried):
    _, server = tried
    browser.open(server.url)
    send(browser, "a text", "")
    assert "text pair is empty; type a text" in browser.value(SHOWN)
    assert browser.value(TYPED) == ["a text", ""]
    send(browser, "a reply")  # the cursor is where something is missing
    assert "Computed in" in browser.value(SHOWN)
    assert browser.value(TYPED) == ["a text", "a reply"]


def test_the_button_is_pressed_by_the_mouse_on_a_phone_in_the_dark(browser, tried):
    _, server = tried
    browser.show_as(width=360, scheme="dark")
    browser.open(server.url)
    for field in ("text", "text_pair"):
        browser.click(f"#{field}")
        browser.type("a long text without any end " * 20)
    browser.events.clear()
    browser.click("button")
    browser.wait_for_load()
    assert "Computed in" in browser.value(SHOWN)
    assert browser.value("document.documentElement.scrollWidth") <= 360
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(20, 23, 28)"
    browser.show_as(width=1000)


def test_entities_are_marked_in_their_text(browser, tried_model, served):
    entities = '[{"start": 4, "end": 8, "label": "place", "text": "Rome", "score": 0.9}]'
    model = tried_model(TAGS, {"predicted_entities": entities, "predicted_tags": "[]"})
    with served(model) as server:
        browser.open(server.url)
        send(browser, "in <Rome> today")
        assert browser.value("document.querySelector('mark').textContent") == "Romeplace"

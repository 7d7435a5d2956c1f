"""The form and the answers below it."""

import pytest
from behavior.pages import check_page

from pipeline.trying.page import TryPage

PAIRS = {
    "task": "regression",
    "columns": {"text": "text", "text_pair": "reply", "label": "label"},
}


@pytest.fixture
def page(tried_model) -> TryPage:
    return TryPage(tried_model(PAIRS, {"predicted_value": 1234.5, "lost_tokens": 3}))


def test_the_form_asks_for_every_input_and_names_its_column(page):
    html = page.blank()
    read = check_page(html)
    assert "models/<m>" in read.text and "models/<m>" not in html
    assert [value for name, value in read.attributes if name == "for"] == ["text", "text_pair"]
    assert [value for name, value in read.attributes if name == "name"][-2:] == [
        "text",
        "text_pair",
    ]
    assert "text pair" in "".join(read.text) and "(column reply)" in read.text
    assert html.count("autofocus") == 1
    assert "form-action 'self'" in html


def test_predictions_stand_under_what_was_typed(page):
    html, is_predicted = page.answered({"text": "\n<i>a", "text_pair": "</textarea>&amp;"})
    assert is_predicted
    read = check_page(html)
    # A browser drops the first of two line ends after the tag.
    assert "\n\n<i>a" in read.text
    assert "<textarea" in html and "</textarea>&amp;amp;" not in html
    assert "&lt;/textarea&gt;&amp;amp;</textarea>" in html
    assert {"value", "1234.5"} <= set(read.text)
    assert "too long for the model: 3 tokens cut off" in read.text


def test_what_is_wrong_is_one_line_and_what_was_typed_stays(page):
    html, is_predicted = page.answered({"text": "kept", "text_pair": ""})
    assert not is_predicted
    read = check_page(html)
    assert "text pair is empty; type a text" in read.text
    assert "\nkept" in read.text and read.elements.count("dl") == 0

"""The content of a page follows from the kinds of predictions and the shapes of their values."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.base.declaration import PredictionField
from pipeline.trying.model import Tried
from pipeline.trying.page import MOST_ROWS, marked_text, predictions_html


def shown(fields, predictions, inputs=None, ranking=None) -> str:
    tried = Tried(
        inputs=inputs or {"text": "some text"},
        predictions=predictions,
        ranking=ranking,
        lost_tokens=0,
    )
    return predictions_html(fields, tried, noun="label")


def cells(html: str) -> dict[str, str]:
    """Return the numbers and texts at the top, by their names."""
    return dict(re.findall(r"<dt>(.*?)</dt><dd.*?>(.*?)</dd>", html))


def marks(html: str) -> list[tuple[str, str]]:
    """Return the marked texts and their names."""
    found = re.findall(r"<mark style=\"--hue:\d+\">(.*?)(?:<small>(.*?)</small>)?</mark>", html)
    return [tuple(each) for each in found]


ANSWER = (
    PredictionField("predicted_answer", "text"),
    PredictionField("predicted_start", "place"),
    PredictionField("predicted_end", "place"),
    PredictionField("predicted_score", "probability"),
    PredictionField("predicted_nbest", "json", is_extra=True),
)
ENTITIES = (PredictionField("predicted_entities", "json"),)


def test_scalars_are_named_and_formatted_by_their_kind():
    fields = [
        PredictionField("predicted_label", "label"),
        PredictionField("predicted_score", "probability"),
        PredictionField("predicted_null_odds", "value"),
        PredictionField("predicted_end", "place"),
        PredictionField("predicted_labels", "json"),
        PredictionField("predicted_scores", "json"),
        PredictionField("predicted_topics", "json"),
    ]
    values = ["<b>", 0.25, -3.565726, None, ["a", "b"], [0.5, 9e-06], []]
    html = shown(fields, dict(zip((field.name for field in fields), values, strict=True)))
    assert cells(html) == {
        "label": "&lt;b&gt;",
        "score": "0.2500",
        "null odds": "-3.56573",
        "end": "none",
        "labels": "a, b",
        "scores": "0.5000, 9e-06",
        "topics": "none",
    }


def test_labels_are_bars():
    fields = [PredictionField("predicted_label", "label")]
    html = shown(fields, {"predicted_label": "a<"}, ranking=[("a<", 0.875), ("b", 0.125)])
    assert "<h2>Label probabilities</h2>" in html
    rows = re.findall(r'<th scope="row">(.*?)</th>.*?width:(.*?)%.*?<span>(.*?)</span>', html)
    assert rows == [("a&lt;", "87.5", "0.8750"), ("b", "12.5", "0.1250")]


def test_an_answer_is_marked_where_it_was_found():
    predictions = {
        "predicted_answer": "Łódź & co",
        "predicted_start": 3,
        "predicted_end": 12,
        "predicted_score": 0.5,
        "predicted_nbest": [
            {"text": "Łódź", "start": 3, "end": 7, "probability": 0.5},
            {"text": "", "start": None, "end": None, "probability": 0.25},
        ],
    }
    inputs = {"question": "Who is it, and where?", "context": "😂 <Łódź & co>"}
    html = shown(ANSWER, predictions, inputs)
    assert marks(html) == [("Łódź &amp; co", "")]
    assert '<p class="marked" dir="auto">😂 &lt;<mark' in html
    assert html.index("<summary>nbest</summary>") < html.index("<h2>Nbest</h2>")
    assert re.findall(r"</span><span>(0\.\d{4})</span>", html) == ["0.5000", "0.2500"]


def test_an_answer_is_marked_in_the_context_where_the_question_begins_as_it_does():
    values = ("Paris", 0, 5, 0.5, [])
    predictions = dict(zip((field.name for field in ANSWER), values, strict=True))
    html = shown(ANSWER, predictions, {"question": "Paris?", "context": "Paris is a city."})
    assert "</mark> is a city." in html and html.count("<mark") == 1


def test_no_answer_is_marked_nowhere():
    values = ("", None, None, 0.5, [])
    html = shown(ANSWER, dict(zip((field.name for field in ANSWER), values, strict=True)))
    assert cells(html)["answer"] == "none"
    assert "<mark" not in html


def test_entities_are_marked_in_colors_with_their_labels():
    text = "Łukasz met <b>Eve</b> in São Paulo"
    entities = [
        {"start": 0, "end": 6, "label": "person", "text": "Łukasz", "score": 0.9},
        {"start": 14, "end": 17, "label": "person", "text": "Eve", "score": 0.8},
        {"start": 25, "end": 34, "label": "place", "text": "São Paulo", "score": 0.7},
    ]
    html = shown(ENTITIES, {"predicted_entities": entities}, {"text": text})
    assert marks(html) == [("Łukasz", "person"), ("Eve", "person"), ("São Paulo", "place")]
    first, second, third = re.findall(r"--hue:(\d+)", html)
    assert first == second != third
    assert "<b>" not in html
    assert "<h2>Entities</h2>" in html


def test_tags_of_words_are_marked_but_for_those_outside():
    tags = [{"start": 0, "end": 2, "tag": "B-a"}, {"start": 3, "end": 5, "tag": "O"}]
    fields = [PredictionField("predicted_tags", "json", is_extra=True)]
    html = shown(fields, {"predicted_tags": tags}, {"text": "ab cd"})
    assert html.startswith("<details><summary>tags</summary>")
    assert marks(html) == [("ab", "B-a")]


def test_spans_of_no_input_are_a_table_alone():
    entities = [{"start": 0, "end": 2, "label": "a", "text": "xy"}]
    html = shown(ENTITIES, {"predicted_entities": entities}, {"text": "other"})
    assert "<mark" not in html and "<table>" in html


def test_candidates_are_a_table_for_each_list():
    fields = [PredictionField("predicted_tokens", "json")]
    candidates = [[{"token": name, "score": 0.25, "text": f"{name}!"}] for name in ("a", "<b>")]
    html = shown(fields, {"predicted_tokens": candidates})
    assert re.findall("<h2>(.*?)</h2>", html) == ["Tokens, 1 of 2", "Tokens, 2 of 2"]
    assert html.count("width:25.0%") == 2
    assert "&lt;b&gt;!" in html and "<b>" not in html


def test_long_tables_are_cut_and_say_so():
    entities = [{"start": n, "end": n + 1, "label": "a"} for n in range(MOST_ROWS + 1)]
    text = "x" * (MOST_ROWS + 1)
    html = shown(ENTITIES, {"predicted_entities": entities}, {"text": text})
    assert html.count("<tr>") == 1 + MOST_ROWS
    assert f"The first {MOST_ROWS} of {MOST_ROWS + 1}." in html
    assert len(marks(html)) == MOST_ROWS + 1


def test_other_json_is_shown_as_it_is():
    html = shown(ENTITIES, {"predicted_entities": {"<a>": [1]}})
    assert "{&quot;&lt;a&gt;&quot;: [1]}" in html


def test_marks_of_a_text():
    html = marked_text("in Rome", [(3, 7, "place")])
    assert re.sub("--hue:[0-9]+", "…", html) == (
        '<p class="marked" dir="auto">in <mark style="…">Rome<small>place</small></mark></p>'
    )


@pytest.mark.parametrize("spans", [[(0, 4, "a"), (2, 6, "b")], [(2, 9, "b"), (0, 4, "a")]])
def test_what_overlaps_or_lies_outside_is_left_out(spans):
    assert marks(marked_text("abcdef", spans)) == [("abcd", "a")]


def test_up_to_eight_names_have_colors_of_their_own():
    names = [f"label {number}" for number in range(9)]
    spans = [(place, place + 1, name) for place, name in enumerate(names)]
    hues = re.findall(r"--hue:(\d+)", marked_text("x" * 9, spans))
    assert len(set(hues)) == 8
    assert len(set(re.findall(r"--hue:(\d+)", marked_text("x" * 9, spans[:8])))) == 8
    # A name has the same color next to others.
    (alone,) = re.findall(r"--hue:(\d+)", marked_text("x", [(0, 1, "person")]))
    assert alone == re.findall(r"--hue:(\d+)", marked_text("xy", [(0, 1, "person")]))[0]


class _Shown(HTMLParser):
    """The visible part of a marked text, without the names of the marks."""

    def __init__(self, html: str):
        super().__init__()
        self.text = ""
        self._is_name = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag in ("p", "mark", "small")
        self._is_name = tag == "small"

    def handle_endtag(self, tag):
        self._is_name = False

    def handle_data(self, data):
        self.text += "" if self._is_name else data


@given(
    st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), max_size=20),
    st.lists(st.tuples(st.integers(-2, 22), st.integers(-2, 22), st.text("<&ab", max_size=3))),
)
def test_marks_never_change_the_text(text, spans):
    assert _Shown(marked_text(text, spans)).text == text

"""The output of `inspect` for pretraining records, in the terminal and as a page."""

import html.parser

import numpy as np
import pytest

from pipeline.report.records import (
    ShownExample,
    ShownToken,
    SplitSummary,
    histogram_lines,
    make_histogram,
    record_lines,
)
from pipeline.report.records_page import _segment_html


@pytest.mark.parametrize(
    ("values", "highest", "lines"),
    [
        ([1, 2, 2], 2, ["1:  33.3% #############", "2:  66.7% ###########################"]),
        ([32, 1], 32, ["1 to 2:  50.0% " + "#" * 20, "31 to 32:  50.0% " + "#" * 20]),
    ],
)
def test_a_histogram_has_a_bar_for_each_range_with_its_share(values, highest, lines):
    histogram = make_histogram("tokens", np.array(values), highest)
    title, *bars = histogram_lines(histogram, "train")
    assert title == "train: tokens"
    assert [bar.strip() for bar in bars if "#" in bar] == lines
    assert len(bars) == min(highest, 16)
    assert histogram.counts.sum() == len(values)


TOKENS = [
    ShownToken("the"),
    ShownToken("[MASK]", "cat"),
    ShownToken("##s"),
    ShownToken("<b>", "sat"),
    ShownToken("down", "down"),
]


def test_targets_are_shown_in_the_text():
    summary = SplitSummary("train", [], examples=[ShownExample("one", [("first", TOKENS)])])
    assert record_lines([summary]) == ["one", "  first:  the [MASK→cat]s [<b>→sat] [down]"]


def test_the_page_marks_targets_by_what_became_of_them():
    class Reader(html.parser.HTMLParser):
        found = ""

        def handle_starttag(self, tag, attrs):
            self.found += f"{{{dict(attrs).get('class', tag).split()[-1]}}}"

        def handle_data(self, data):
            self.found += data

    reader = Reader()
    reader.feed(_segment_html(TOKENS))
    assert reader.found == "the {mask}[MASK]{small} → cats {random}<b>{small} → sat {kept}down"

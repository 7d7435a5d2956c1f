"""Sections of pages: tables, histograms, marked texts."""

import numpy as np
import pytest
from behavior.pages import check_page

from bert_tf.tasks.base.report_sections import HistogramSection, Mark, MatrixSection, TableSection
from pipeline.report.document import (
    html_document,
    marked_html,
    section_html,
    table_html,
    tiles_html,
)


@pytest.mark.parametrize(("kind", "shown"), [("fraction", "0.9250"), ("percent", "92.50")])
def test_a_bar_has_the_number_of_its_kind(kind, shown):
    table = TableSection(title="T", columns=(("word", "text"), ("F1", kind)), rows=[["a", 0.925]])
    html = table_html(table)
    assert f"<span>{shown}</span>" in html
    assert "width:92.5%" in html


@pytest.mark.parametrize(("note", "has_table"), [("None.", False), ("", True)])
def test_a_note_stands_for_an_empty_table(note, has_table):
    html = section_html(TableSection(title="T", columns=(("word", "text"),), rows=[], note=note))
    assert ("<table>" in html) == has_table


def test_the_largest_share_of_a_column_has_the_longest_bar():
    table = TableSection(
        title="T", columns=(("word", "text"), ("of all", "share")), rows=[["a", 0.04], ["b", 0.01]]
    )
    html = table_html(table)
    assert "width:100.0%" in html and "width:25.0%" in html and "<span>4.0%</span>" in html


def test_a_histogram_is_a_picture_with_a_name_and_a_table_with_its_numbers():
    section = HistogramSection(
        title="lengths",
        x_title="tokens",
        noun="records",
        names=["1 to 2", "3 to 4", "5 to 6"],
        ticks=["1", "3", "5", "7"],
        counts=np.array([3, 0, 1]),
        parts=np.array([1, 0, 1]),
        part_noun="cut",
    )
    html = html_document("T", [section], command="c")
    page = check_page(html)
    assert "Lengths" in page.text and "1 to 2: 3 records, 1 cut" in page.text
    assert "Lengths in numbers" in page.text or "lengths in numbers" in page.text
    assert html.count('class="bar" d=') == 2 and html.count('class="part" d=') == 2
    (label,) = (value for name, value in page.attributes if name == "aria-label" and "by" in value)
    assert label == "lengths: 4 records by tokens; most of them at 1 to 2"


@pytest.mark.parametrize(
    ("marks", "shown"),
    [
        ([Mark(0, 4, "right", "LOC")], '<mark class="right">Rome<small>LOC</small></mark> &lt;is'),
        ([Mark(0, 4, "missed"), Mark(5, 8, "wrong")],
         '<mark class="missed">Rome</mark> <mark class="wrong">&lt;is</mark>'),
        ([Mark(0, 4, "missed", "LOC"), Mark(2, 8, "wrong", "PER")],
         '<mark class="missed">Ro</mark><mark class="both">me<small>LOC</small></mark>'
         '<mark class="wrong"> &lt;is<small>PER</small></mark>'),
        ([Mark(3, 3, "right"), Mark(6, 99, "right")], "Rome &lt;is"),
    ],
)  # fmt: skip
def test_marks_of_a_text_may_overlap_and_no_text_is_markup(marks, shown):
    assert marked_html("Rome <is", marks) == shown


@pytest.mark.parametrize(("columns", "is_narrow"), [(3, True), (30, False)])
def test_sections_that_half_of_a_wide_screen_holds_stand_side_by_side(columns, is_narrow):
    names = [f"label {number}" for number in range(columns)]
    counts = np.eye(columns, dtype=int)
    matrix = MatrixSection(
        title="M", row_title="r", column_title="c", rows=names, columns=names, counts=counts
    )
    assert ('<section class="narrow">' in section_html(matrix)) == is_narrow


def test_paper_is_white_whatever_the_screen():
    html = html_document("T", [], command="c")
    assert "@media print" in html
    assert "@media (prefers-color-scheme" not in html, "of screens only"


def test_long_names_of_tiles_break_at_underscores():
    html = tiles_html({"exact_match_unanswerable": "1", "macro_f1": "2"})
    assert "exact_<wbr>match_<wbr>unanswerable" in html
    assert "macro_f1" in html

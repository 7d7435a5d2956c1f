"""Tables of pages."""

import pytest

from bert_tf.tasks.base.report_sections import TableSection
from pipeline.report.document import section_html, table_html


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

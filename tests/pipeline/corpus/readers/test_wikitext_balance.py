"""Pages with mark-up that is never closed: rejected before they cost time with their square."""

import itertools

import pytest
from behavior.timing import superlinear_growth

from pipeline.corpus.readers.wikitext import (
    Balance,
    WikitextError,
    is_too_unbalanced,
    plain_text,
)

HIDDEN = frozenset({"file", "category"})
OPEN = (
    "{{a|", "{{{a|", "[[a|", "<div>", "<div a='", '<div a="', "\n{|\n|", "<ref name='{{a|",
    "[http://a ", "<div {{a|", "<nowiki>", "<ref ", "\n{|", "<!-- -->\n", "\n <!--",
)  # fmt: skip
CLOSE = (
    "",
    "}}",
    "}}}",
    "]]",
    "</div>",
    "'></div>",
    "/>",
    "\n|}",
    ">",
    "]",
    "</nowiki>",
    "\n",
    " ",
)


@pytest.mark.parametrize(
    "wikitext",
    [
        "{{a|{{b}}|c=[[d|e]]}} <ref name=\"x\">[http://a.org b]</ref> '''bold'''",
        "{|\n! a !! b\n|-\n| c || {{d|}}\n|}",
        "{{{{{a}}}}} {{{b|{{c}}}}} {{{{d}}}}",
        "<br><br/><li>one<nowiki>{{ [[ <div></nowiki><div class='a'>b</div>",
        "[[File:a.png|thumb|a [[b]] c]] a < b and b > c, List<br />",
        '<ref name={{x}} /> <td {{y}}>z <span style="a: [b]">c</span>',
    ],
)
def test_what_is_closed_costs_nothing(wikitext):
    assert Balance(wikitext).cost() == 0


def test_what_stays_open_costs_the_way_to_the_end():
    assert Balance("a {{b c").cost() == 5
    assert Balance("[[a <b> ]] c").cost() == 12 + 8  # the parser reads ahead for both
    assert Balance("[http://a b\nc").cost() == 11  # a link ends with its line


def test_a_few_slips_in_a_long_page_are_no_reason():
    page = "Text with [[links]] and {{templates|a}}. " * 5000
    assert not is_too_unbalanced("<small>" * 50 + page + "{{never closed " + page)
    assert "Text with links and. Text" in plain_text(f"{{{{stray\n{page}", HIDDEN)


@pytest.mark.parametrize("opened", ["\n{|", "{{a|", "<ref ", "<div>", "<nowiki>", "[[a|"])
def test_marks_that_are_never_closed_reject_a_page(opened):
    with pytest.raises(WikitextError, match="too much of its mark-up is never closed"):
        plain_text(opened * 6000, HIDDEN)


@pytest.mark.slow  # measures time on every pair of marks
def test_no_pair_of_marks_takes_time_beyond_the_pages_length(monkeypatch):
    """A page may cost a tenth of the usual limit, which short pages of such marks exceed."""
    monkeypatch.setattr("pipeline.corpus.readers.wikitext._ALWAYS_FREE", 0)
    monkeypatch.setattr("pipeline.corpus.readers.wikitext.MOST_READ_AGAIN", 20)

    def read(page):
        try:
            plain_text(page, HIDDEN)
        except WikitextError:
            assert is_too_unbalanced(page.replace("<!-- -->\n", ""))

    for opened, close in itertools.product(OPEN, CLOSE):
        marks = opened + close
        growth = superlinear_growth(read, marks.__mul__, size=400, smallest=50)
        assert growth is None, marks


@pytest.mark.slow
@pytest.mark.parametrize(
    "repeated", ["{{a}}", "{{a}} ", "({{a}}", "{{a}},", "{{a}}) ", " ,", "[{{a}}:", "\n <!-- a -->"]
)
def test_holes_are_closed_in_time_in_proportion(repeated):
    for begin in ("a", "a ("):
        growth = superlinear_growth(
            lambda page: plain_text(page, HIDDEN),
            lambda size, begin=begin: begin + repeated * size + "b",
            size=4_000,
        )
        assert growth is None, begin

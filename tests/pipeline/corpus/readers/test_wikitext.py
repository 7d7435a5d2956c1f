"""Wikitext and the prose of it: constructs as MediaWiki's help pages and parser tests have them."""

import html
import re

import mwparserfromhell
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.corpus.readers.wikitext import plain_text
from pipeline.corpus.readers.wikitext_rendering import thousands_of

HIDDEN = frozenset({"file", "image", "category", "файл"})


def prose(wikitext):
    return plain_text(wikitext, HIDDEN)


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("", ""),
        ("Plain text.", "Plain text."),
        # Lines: one end is a space, a blank line separates paragraphs, items stand alone.
        ("one\ntwo\n\nthree", "one two\n\nthree"),
        ("* a\n* b\n** c\nafter", "a\n\nb\n\nc\n\nafter"),
        ("# one\n: two\n; term : meaning", "one\n\ntwo\n\nterm meaning"),
        ("== Heading ==\nText\n=== Other ===\n\nMore", "Text\n\nMore"),
        ("before\n----\nafter", "before\n\nafter"),
        ("one<br />two<br>three", "one\n\ntwo\n\nthree"),
        ("a <!-- hidden --> b", "a b"),
        ("one\n<!-- a line -->\ntwo <!-- never closed", "one two"),
        # Links.
        ("[[dog]]s and [[cat|the cat]]", "dogs and the cat"),
        ("[[Help:Contents|]] [[:Category:Animals]]", "Category:Animals"),
        ("[[Category:Animals]][[File:x.jpg|thumb|A [[dog]] runs]]x", "x"),
        ("[[Файл:x.tif]][[Datei:Bild.PNG|mini|Ein Bild]][[image:y]]x", "x"),
        ("[[fr:Chien]][[zh-min-nan:Káu]][[Star Wars: Episode I]]", "Star Wars: Episode I"),
        ("[http://a.org a page], [http://a.org], http://a.org", "a page, http://a.org"),
        ("[[Kruskal&ndash;Wallis]]", "Kruskal–Wallis"),
        # Templates, tables, references and tags.
        ("{{Infobox\n| name = x {{nested|{{deep}}}}\n}}Text{{cn}}.", "Text."),
        ("a {{{1|default}}} b", "a b"),
        ('{| class="x"\n! head\n|-\n| cell || [[link]]\n{|\n| inner\n|}\n|}\nText', "Text"),
        (
            "A fact.<ref>Book {{cite}}</ref><ref name=x /> Next<ref name='y'>z</ref>.",
            "A fact. Next.",
        ),
        ("H<sub>2</sub>O, <span style='x'>red</span> <small>few</small>", "H2O, red few"),
        ("x <math>a < b</math> y <gallery>\nFile:x.jpg|text\n</gallery>", "x y"),
        ("<blockquote>quoted</blockquote>after", "quoted\n\nafter"),
        ("<nowiki>kept {|</nowiki> <pre>x</pre>", "kept {|\n\nx"),
        ("&amp; &lt; &#8212; &#x2014; &nbsp;x &unknown;", "& < — — x &unknown;"),
        ("&#1;a&#xD800;b&#x110000;", "a\ufffdb&#x110000;"),
        ("__NOTOC__Text __FORCETOC__ __init__", "Text __init__"),
        # Templates that show a part of them.
        ("over {{convert|5|km|mi}} and {{Convert|10|-|20|ft|m|abbr=on}}", "over 5 km and 10–20 ft"),
        ("({{lang|grc|ἄχος}}, {{lang-de|Weh}})", "(ἄχος, Weh)"),
        ("{{As of|2010}}, 1914{{ndash}}18, {{nowrap|1=a b}}", "As of 2010, 1914–18, a b"),
        ("{{convert}} x {{lang|de}} y", "x y"),
        ("{{formatnum:1234567}} of {{formatnum: -1234.5678 }}", "1,234,567 of -1,234.5678"),
        ("{{FORMATNUM:12,345|R}}, {{formatnum:9876|NOSEP}}, {{formatnum:999}}", "12345, 9876, 999"),
        ("about {{formatnum:{{Population|x}}}} people", "about people"),
        # What stands around something left out.
        ("Anarchism ({{IPA|x}}; from Greek, {{x}}) is", "Anarchism (from Greek) is"),
        ("a ({{x}}) b ( {{x}}, {{y}} ) c() (d)", "a b c() (d)"),
        ("such as {{x}}, b {{y}} , c {{z}}.", "such as, b, c."),
        ("'''{{Flag}}''' (UK)", "(UK)"),
        ("{{x}}, the country", "the country"),
        # Markup that is not closed.
        ("a '''bold'' both", "a 'bold both"),
        ("a '''b", "a b"),
        ("see [[link and\nmore ]] text", "see link and more text"),
        ("{{never closed\n| a = b\nText}}", ""),
        ("x {{open\nnext", "x next"),
        ("{| class=x\n|-\n| cell\ntext\n! a !! b", "text"),
        ("!Kung people", "!Kung people"),
        ("<ref>open and <b>bold", "open and bold"),
    ],
)
def test_prose(wikitext, text):
    assert prose(wikitext) == text


@pytest.mark.parametrize(
    ("language", "shown"), [("en", "1,234"), ("zh-tw", "1,234"), ("de", "1234"), ("bg", "1234")]
)
def test_numbers_have_the_separators_of_the_language_or_none(language, shown):
    assert plain_text("{{formatnum:1234}} x", HIDDEN, thousands_of(language)) == f"{shown} x"


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("plain''italic''plain", "plainitalicplain"),
        ("plain'''bold'''''bold-italic'''''plain", "plainboldbold-italicplain"),
        ("'''''bold-italic'''bold''plain", "bold-italicboldplain"),
        ("''Tom'''s car is bigger than ''Susan'''s.", "Toms car is bigger than Susans."),
        # One apostrophe too many, and both left open: one stays.
        ("this year''''s election", "this year's election"),
        ("L'''Encyclopédie''", "L'Encyclopédie"),
        ("dans '''un''' livre, l'''homme''", "dans un livre, l'homme"),
        ("''a ''''''b", "a 'b"),
        # Apostrophes in a row are no text, though MediaWiki shows them.
        ("''''''''a", "a"),
        ("a ''''b ''c", "a b c"),
        ("x '{{y}}'{{y}}' z", "x z"),
    ],
)
def test_apostrophes_stay_and_quotes_for_bold_and_italics_go(wikitext, text):
    """The cases are those of MediaWiki's parserTests.txt, section on quotes."""
    assert prose(wikitext) == text


MARKUP = st.sampled_from(
    [
        "[[", "]]", "{{", "}}", "{{{", "}}}", "{|", "|}", "|", "!", "''", "'''", "[", "]", "<ref>",
        "</ref>", "<b>", "</b>", "<br>", "<!--", "-->", "<math>", "</math>", "<nowiki>",
        "</nowiki>", "=", "==", "*", "#", ":", ";", "\n", "\n\n", "(", ")", ",", ".", "&amp;",
        "&#1;", "http://a.b", "File:", "word", "и", "中", "-", " ",
    ]
)  # fmt: skip


@given(st.lists(MARKUP, max_size=25))
@example(["''", "'''", "'''", "http://a.b"])
@example(["{{", "{{", "[[", "{{", "{{", " ", "word"])
def test_any_markup_gives_clean_paragraphs(parts):
    text = prose("".join(parts))
    assert not re.search("[\x00-\x09\x0b-\x1f]|''|\\{\\{|\\}\\}|\\[\\[|\\]\\]|\n\n\n", text)
    assert text == text.strip()


@given(
    st.lists(
        st.sampled_from(
            [
                "a word",
                " ",
                "[[link]]",
                "[[to|text]]",
                "''it'' ",
                "<b>bold</b>",
                "&eacute;",
                "<ref>x</ref>",
            ]
        ),
        max_size=12,
    )
)
def test_a_sentence_is_what_mwparserfromhell_strips_it_to(parts):
    wikitext = "x" + "".join(parts)
    code = mwparserfromhell.parse(wikitext)
    for tag in code.filter_tags(matches=lambda node: node.tag == "ref"):
        code.remove(tag)
    expected = html.unescape(code.strip_code(normalize=True))
    assert prose(wikitext).split() == expected.split()


def test_deep_nesting_and_long_pages_are_read():
    assert prose("{{a|" * 200 + "x" + "}}" * 200 + " end").endswith("end")
    assert prose("[[" * 300 + "x") == "x"
    assert len(prose("A sentence with a [[link]] in it. " * 5_000)) == 5_000 * 30 - 1

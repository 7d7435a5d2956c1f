"""From a page's wikitext to its prose: paragraphs and list items without markup.

The parser is mwparserfromhell. Templates, tables, references, headings, formulas, comments and
links to files, categories and other languages go; of other links the text stays. As in MediaWiki, a
single line end inside a paragraph is a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mwparserfromhell.parser import CTokenizer, ParserError
from mwparserfromhell.parser import tokenizer as python_tokenizer

from pipeline.corpus.readers.mediawiki.balance import is_too_unbalanced
from pipeline.corpus.readers.mediawiki.leftovers import without_leftovers
from pipeline.corpus.readers.mediawiki.rendering import BREAK, ITEM, Renderer

_Tokenizer = CTokenizer or python_tokenizer.Tokenizer
_COMMENT = re.compile(
    r"(?P<before>(?<=\n)[ \t]*+)?+<!--.*?(?:-->(?P<after>[ \t]*+\n)?|\Z)", re.DOTALL
)


class WikitextError(ValueError):
    """The parser cannot make sense of a page."""


def plain_text(wikitext: str, hidden_namespaces: frozenset[str], thousands: str = ",") -> str:
    """The prose of a page, with a blank line between its paragraphs and list items.

    Args:
        wikitext: the source of the page.
        hidden_namespaces: lower-case names of the namespaces whose links do not show (files,
            categories).
        thousands: separator that the wiki's language has in numbers.

    Raises:
        WikitextError: the text cannot be parsed, or not in time in proportion to its length.
    """
    wikitext = _COMMENT.sub(_without_comment, wikitext)
    if is_too_unbalanced(wikitext):
        raise WikitextError("too much of its mark-up is never closed")
    try:
        # Quotes for bold and italics that are not balanced would upset what stands around them.
        found = _Tokenizer().tokenize(wikitext, 0, True)
    except ParserError as error:
        raise WikitextError(str(error)) from None
    text = Renderer(found, hidden_namespaces, thousands).text()
    return BREAK.join(_paragraphs(without_leftovers(text)))


def _without_comment(comment: re.Match[str]) -> str:
    """What stays of a comment and the spaces around it: nothing, if it is a line of its own."""
    before, after = comment["before"], comment["after"] or ""
    return after if before is None else before if not after else ""


def _paragraphs(text: str) -> Iterator[str]:
    paragraph: list[str] = []
    for line in text.split("\n"):
        is_item = ITEM in line
        line = " ".join(line.replace(ITEM, " ").split()).lstrip(",;: ")
        if paragraph and (is_item or not line):
            yield " ".join(paragraph)
            paragraph = []
        if not any(map(str.isalnum, line)):
            continue
        if is_item:
            yield line
        else:
            paragraph.append(line)
    if paragraph:
        yield " ".join(paragraph)

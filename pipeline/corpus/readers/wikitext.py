"""Extract a page's prose (paragraphs, list items) from wikitext, parsed by mwparserfromhell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mwparserfromhell.parser import CTokenizer, ParserError
from mwparserfromhell.parser import tokenizer as python_tokenizer

from pipeline.corpus.readers.wikitext_rendering import BREAK, HOLE, ITEM, Renderer

_Tokenizer = CTokenizer or python_tokenizer.Tokenizer
# A possessive group that fails half-way matches its half in Python before 3.11.5 (gh-106052).
_COMMENT = re.compile(
    r"(?P<before>(?<=\n)[ \t]*+)?<!--.*?(?:-->(?P<after>[ \t]*+\n)?|\Z)", re.DOTALL
)
# Characters read in vain that a page may cost for each of its own. Of 10,000 characters with 400
# marks left open, evenly spread, each costs 200.
MOST_READ_AGAIN = 200
_ALWAYS_FREE = 100_000  # such characters; short pages are quick in any case
_OPAQUE = frozenset(("math", "nowiki", "pre", "score", "source", "syntaxhighlight", "timeline"))
_END_OF_OPAQUE = {name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in _OPAQUE}
# Elements that may stay open.
_SINGLE = frozenset(("br", "dd", "dt", "hr", "img", "li", "link", "meta", "td", "th", "tr", "wbr"))
_ATTRIBUTE = (
    r"""[^][{}<>"'=/\s]++(?:\s*+=\s*+(?:"[^]["{}<>]*+"|'[^]['{}<>]*+'|[^][{}<>"'=\s]++)|)"""
)
_MARK = re.compile(
    rf"""
    (?P<line>\n)
    | (?P<braces>\{{\{{++) | (?P<unbraces>\}}\}}++)
    | (?P<open>\[\[ | ^[ \t:]*+\{{\|) | (?P<close>\]\] | ^[ \t]*+\|\}}(?!\}}))
    | (?P<link>\[(?=[a-zA-Z]{{2,12}}: | //)) | (?P<unlink>\])
    | </(?P<end>[a-zA-Z][a-zA-Z0-9]*+)\s*+>
    | <(?P<tag>[a-zA-Z][a-zA-Z0-9]*+)(?P<whole>(?:\s++{_ATTRIBUTE})*+\s*+(?P<empty>/)?+>)?
    | (?P<tail>/?>)
    """,
    re.MULTILINE | re.VERBOSE,
)
_CLOSES = {"]]": "[[", "|}": "{|"}
_TEMPLATE = "{{"
_ARGUMENT = "{{{"
_LINK = "["
_MOST_TAG_CHARACTERS = 1000  # a longer tag counts as never closed
_QUOTES = re.compile(r"'{2,}")
_MAGIC_WORD = re.compile(r"__[^\W\d_]+__")
_TABLE_LINE = re.compile(r"^[ \t]*(?:\{\||\||!.*(?:!!|\|)).*$", re.MULTILINE)
_STRAY_BRACES = re.compile(r"\{\{[^{}\n]*$|\{\{\{?|\}\}\}?", re.MULTILINE)
_BRACKETS = re.compile(r"\[\[(?:[^\[\]|\n]*\|)?|\]\]")
# Marks that meet when the text between them is removed, and the rest of a long run of quotes.
_MET = re.compile(r"'{2,}|\{{2,}|\}{2,}|\[{2,}|\]{2,}")
# Brackets and commas around a hole are removed with it: `(Greek: {{...}})`, `one, {{...}}, two`.
# Nothing is tried twice in these patterns (`++`, `(?<!`): the time for a run of spaces or holes
# would grow with its square.
_SPACES = r"[^\S\n]*+"
_HOLLOW = rf"(?:[^\S\n]|[,;:/])*+{HOLE}(?:[^\S\n]|[,;:/]|{HOLE})*+"
_HOLLOWS = (
    re.compile(rf"(?<![^\S\n]){_SPACES}(?:\({_HOLLOW}\)|\[{_HOLLOW}\]|（{_HOLLOW}）)"),
    re.compile(rf"(?<=[(（\[]){_HOLLOW}"),
    re.compile(rf"(?<![,;:/{HOLE}])(?<![^\S\n]){_HOLLOW}(?=[)）\]])"),
    re.compile(rf"(?:,{_SPACES}|(?<![^\S\n]){_SPACES}){HOLE}{_SPACES}(?=[,.;:!?])"),
)


class WikitextError(ValueError):
    """The parser cannot make sense of a page."""


def plain_text(wikitext: str, hidden_namespaces: frozenset[str], thousands: str = ",") -> str:
    """Return the prose of a page, with a blank line between its paragraphs and list items.

    Args:
        hidden_namespaces: lower-case names of the namespaces whose links do not show (files,
            categories).
        thousands: separator in numbers of the wiki's language.

    Raises:
        WikitextError: the text cannot be parsed, or not in time in proportion to its length.
    """
    wikitext = _COMMENT.sub(_without_comment, wikitext)
    if is_too_unbalanced(wikitext):
        raise WikitextError("too much of its mark-up is never closed")
    try:
        # The last argument leaves quotes for bold and italics in the text: parsing unbalanced ones
        # would upset the text around them. `_without_quotes` removes them.
        tokens = _Tokenizer().tokenize(wikitext, 0, True)
    except ParserError as error:
        raise WikitextError(str(error)) from None
    text = Renderer(tokens, hidden_namespaces, thousands).text()
    return BREAK.join(_paragraphs(without_leftovers(text)))


def _without_comment(comment: re.Match[str]) -> str:
    """Remove a comment with the spaces around it, and its line if it has one of its own."""
    before = comment["before"]
    after = comment["after"] or ""
    if before is None:
        return after
    return "" if after else before


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, each with its lines joined, and list items.

    Lines without letters and digits are dropped.
    """
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


def is_too_unbalanced(wikitext: str) -> bool:
    """Whether unclosed markup makes parsing a page (without comments) too slow.

    For such markup the parser reads on to the end of the page, then begins again after it, so the
    time grows with the square of the page. A mark closes only the last one that is open.
    """
    return Balance(wikitext).cost() > MOST_READ_AGAIN * len(wikitext) + _ALWAYS_FREE


class Balance:
    """Finds the marks of a page that are never closed, by a stack of those that are open.

    On the stack are templates, arguments, links and elements, each with its place.
    """

    def __init__(self, wikitext: str):
        self._wikitext = wikitext
        self._open: list[tuple[str, int]] = []
        self._endless: set[str] = set()  # elements that are never closed from here on

    def cost(self) -> int:
        """Sum of the distances of unclosed marks from the end of the page."""
        position = 0
        lost = 0  # characters from links that are not closed to the ends of their lines
        while mark := _MARK.search(self._wikitext, position):
            position = mark.end()
            kind = mark.lastgroup
            if kind == "line":
                while self._open and self._open[-1][0] == _LINK:  # a link ends with its line
                    _, place = self._open.pop()
                    lost += mark.start() - place
            elif kind == "braces":
                templates, is_odd = divmod(len(mark[0]), 2)
                self._open += [(_TEMPLATE, mark.start())] * (templates - is_odd)
                self._open += [(_ARGUMENT, mark.start())] * is_odd
            elif kind == "unbraces":
                self._close_braces(len(mark[0]))
            elif kind in ("open", "link"):
                self._open.append((mark[0][-2:], mark.start()))
            elif kind == "close":
                self._close(_CLOSES[mark[0].strip()])
            elif kind == "unlink":
                self._close(_LINK)
            elif kind == "end":
                self._close(f"<{mark['end'].lower()}>")
            elif kind == "tail":
                self._end_tag(mark)
            elif mark["whole"] is None:  # continues to some `>`
                self._open.append((f"</{mark['tag'].lower()}", mark.start()))
            elif mark["empty"] is None:
                position = self._begin_element(mark["tag"].lower(), mark.start(), position)
        return lost + sum(len(self._wikitext) - place for _, place in self._open)

    def _close(self, opened: str) -> bool:
        """Close the last mark if it is this one; return whether it is."""
        if self._open and self._open[-1][0] == opened:
            self._open.pop()
            return True
        return False

    def _close_braces(self, count: int) -> None:
        while count >= 2:
            if count >= 3 and self._close(_ARGUMENT):
                count -= 3
            elif self._close(_TEMPLATE):
                count -= 2
            else:
                break

    def _end_tag(self, mark: re.Match[str]) -> None:
        """End the tag that is open with `>` or `/>`, unless this is inside of a quoted value."""
        if not self._open or not self._open[-1][0].startswith("</"):
            return
        name, place = self._open[-1]
        if mark.start() - place >= _MOST_TAG_CHARACTERS:
            return
        attributes = self._wikitext[place : mark.start()]
        if attributes.count('"') % 2 or attributes.count("'") % 2:
            return
        self._open.pop()
        if mark[0] == ">":
            self._begin_element(name[2:], place, mark.end())

    def _begin_element(self, name: str, place: int, position: int) -> int:
        """Note an open element; return where parsing continues."""
        if name in _SINGLE:
            return position
        if name in _OPAQUE and name not in self._endless:
            end = _END_OF_OPAQUE[name].search(self._wikitext, position)
            if end is not None:
                return end.end()
            self._endless.add(name)
        self._open.append((f"<{name}>", place))
        return position


def without_leftovers(text: str) -> str:
    """Remove leftovers of parsing: quotes for bold and italics, stray markup, templates' holes."""
    # Holes keep apart the quotes on both sides of them until the quotes are gone.
    text = "\n".join(_without_quotes(line) if "''" in line else line for line in text.split("\n"))
    text = _MAGIC_WORD.sub(lambda word: "" if word[0].isupper() else word[0], text)
    if "|" in text or "!" in text:
        text = _TABLE_LINE.sub("", text)
    text = _BRACKETS.sub("", _STRAY_BRACES.sub("", text))
    if HOLE in text:
        for hollow in _HOLLOWS:
            text = hollow.sub("", text)
    # A space, unlike nothing, cannot let further marks meet: one pass is enough.
    return _MET.sub(" ", text.replace(HOLE, ""))


def _without_quotes(line: str) -> str:
    """Remove the quotes of bold and italics, not apostrophes, as MediaWiki's `doQuotes` does.

    Two quotes are italics, three bold, and five both. Of four, the first is an apostrophe; of more
    than five, all but the last five.
    """
    parts = _QUOTES.split(line)
    marks = _QUOTES.findall(line)
    lengths = []
    for place, mark in enumerate(marks):
        spare = 1 if len(mark) == 4 else max(len(mark) - 5, 0)
        parts[place] += "'" * spare
        lengths.append(len(mark) - spare)
    bold = sum(length in (3, 5) for length in lengths)
    italics = sum(length in (2, 5) for length in lengths)
    bolds = [place for place, length in enumerate(lengths) if length == 3]
    if bold % 2 and italics % 2 and bolds:
        # One mark of bold is an apostrophe and a mark of italics: the first after a word of one
        # letter, else after a longer word, else after a space.
        def distance(place: int) -> int:
            before = parts[place]
            if before.endswith(" "):
                return 2
            return 0 if before[-2:-1] == " " else 1

        parts[min(bolds, key=distance)] += "'"
    return "".join(parts)

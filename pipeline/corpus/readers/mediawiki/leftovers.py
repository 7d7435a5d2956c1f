"""Takes away what is left of the markup: quotes for bold and italics, what unbalanced markup
leaves, and the holes that templates leave.
"""

from __future__ import annotations

import re

from pipeline.corpus.readers.mediawiki.rendering import HOLE

_QUOTES = re.compile(r"'{2,}")
_MAGIC_WORD = re.compile(r"__[^\W\d_]+__")
_TABLE_LINE = re.compile(r"^[ \t]*(?:\{\||\||!.*(?:!!|\|)).*$", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{[^{}\n]*$|\{\{\{?|\}\}\}?", re.MULTILINE)
_BRACKETS = re.compile(r"\[\[(?:[^\[\]|\n]*\|)?|\]\]")
# Marks that meet when what stood between them went, and what is left of a long run of quotes.
_MET = re.compile(r"'{2,}|\{{2,}|\}{2,}|\[{2,}|\]{2,}")
# What stands around a hole goes with it: `(Greek: {{...}})`, `one, {{...}}, two`. Nothing is tried
# twice in these (`++`, `(?<!`): a run of spaces or holes would take time with its square.
_SPACES = r"[^\S\n]*+"
_HOLLOW = rf"(?:[^\S\n]|[,;:/])*+{HOLE}(?:[^\S\n]|[,;:/]|{HOLE})*+"
_HOLLOWS = (
    re.compile(rf"(?<![^\S\n]){_SPACES}(?:\({_HOLLOW}\)|\[{_HOLLOW}\]|（{_HOLLOW}）)"),
    re.compile(rf"(?<=[(（\[]){_HOLLOW}"),
    re.compile(rf"(?<![,;:/{HOLE}])(?<![^\S\n]){_HOLLOW}(?=[)）\]])"),
    re.compile(rf"(?:,{_SPACES}|(?<![^\S\n]){_SPACES}){HOLE}{_SPACES}(?=[,.;:!?])"),
)


def without_leftovers(text: str) -> str:
    """The text of a page without quotes for bold and italics, stray markup and holes."""
    # Holes keep apart the quotes on both sides of them until the quotes are gone.
    text = "\n".join(_without_quotes(line) if "''" in line else line for line in text.split("\n"))
    text = _MAGIC_WORD.sub(lambda word: "" if word[0].isupper() else word[0], text)
    if "|" in text or "!" in text:
        text = _TABLE_LINE.sub("", text)
    text = _BRACKETS.sub("", _TEMPLATE.sub("", text))
    if HOLE in text:
        for hollow in _HOLLOWS:
            text = hollow.sub("", text)
    # A space, unlike nothing, cannot let further marks meet: one pass is enough.
    return _MET.sub(" ", text.replace(HOLE, ""))


def _without_quotes(line: str) -> str:
    """Takes away the quotes that make bold and italics, not those that are apostrophes.

    The rules are those of MediaWiki (`doQuotes` of its parser): of four quotes the first is an
    apostrophe, of more than five all before the last five; and where both bold and italics are left
    open, one bold mark is an apostrophe before an italics mark.
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
    if bold % 2 and italics % 2:
        apostrophe = _apostrophe_place(parts, lengths)
        if apostrophe is not None:
            parts[apostrophe] += "'"
    return "".join(parts)


def _apostrophe_place(parts: list[str], lengths: list[int]) -> int | None:
    """Which mark of three is an apostrophe and a mark of two: the first after a word of one letter,
    else after a longer word, else after a space."""
    ranks = [
        (_distance_to_word(parts[place]), place)
        for place, length in enumerate(lengths)
        if length == 3
    ]
    return min(ranks)[1] if ranks else None


def _distance_to_word(before: str) -> int:
    if before.endswith(" "):
        return 2
    return 0 if before[-2:-1] == " " else 1

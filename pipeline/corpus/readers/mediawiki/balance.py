"""Finds pages whose mark-up is left open so often that parsing takes time beyond their length.

For mark-up that is never closed the parser reads on to the end of the page, then begins again after
it, so the time grows with the square of the page. What closes is counted as strictly as may be: a
mark closes the last one that is open, and nothing else.
"""

from __future__ import annotations

import re

# Characters read in vain that a page may cost for each of its own. Of 10,000 characters with 400
# marks left open, evenly spread, each costs 200.
MOST_READ_AGAIN = 200
_ALWAYS_FREE = 100_000  # of them; short pages are quick in any case
_OPAQUE = frozenset(("math", "nowiki", "pre", "score", "source", "syntaxhighlight", "timeline"))
_END_OF_OPAQUE = {name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in _OPAQUE}
# Elements that may stay open.
_SINGLE = frozenset(("br", "dd", "dt", "hr", "img", "li", "link", "meta", "td", "th", "tr", "wbr"))
_ATTRIBUTE = (
    r"""[^][{}<>"'=/\s]++(?:\s*+=\s*+(?:"[^]["{}<>]*+"|'[^]['{}<>]*+'|[^][{}<>"'=\s]++))?+"""
)
_MARK = re.compile(
    rf"""
    (?P<line>\n)
    | (?P<braces>\{{\{{++) | (?P<unbraces>\}}\}}++)
    | (?P<open>\[\[ | ^[ \t:]*+\{{\|) | (?P<close>\]\] | ^[ \t]*+\|\}}(?!\}}))
    | (?P<link>\[(?=[a-zA-Z]{{2,12}}: | //)) | (?P<unlink>\])
    | </(?P<end>[a-zA-Z][a-zA-Z0-9]*+)\s*+>
    | <(?P<tag>[a-zA-Z][a-zA-Z0-9]*+)(?P<whole>(?:\s++{_ATTRIBUTE})*+\s*+(?P<empty>/)?+>)?+
    | (?P<tail>/?>)
    """,
    re.MULTILINE | re.VERBOSE,
)
_CLOSES = {"]]": "[[", "|}": "{|"}
_TEMPLATE, _ARGUMENT, _LINK = "{{", "{{{", "["


def is_too_unbalanced(wikitext: str) -> bool:
    """Whether mark-up that is never closed makes a page costly to parse.

    Args:
        wikitext: the source of a page, without comments.
    """
    return characters_read_again(wikitext) > MOST_READ_AGAIN * len(wikitext) + _ALWAYS_FREE


def characters_read_again(wikitext: str) -> int:
    """How far the marks that are never closed are from the end of the page, together."""
    return _Balance(wikitext).cost()


class _Balance:
    """The marks of a page that are open, with their places."""

    def __init__(self, wikitext: str):
        self._wikitext = wikitext
        self._open: list[tuple[str, int]] = []
        self._endless: set[str] = set()  # elements that are never closed from here on

    def cost(self) -> int:
        """See `characters_read_again`."""
        position = lost = 0
        while mark := _MARK.search(self._wikitext, position):
            position = mark.end()
            kind = mark.lastgroup
            if kind == "line":
                while self._open and self._open[-1][0] == _LINK:  # a link ends with its line
                    lost += mark.start() - self._open.pop()[1]
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
            elif mark["whole"] is None:  # goes on to some `>`
                self._open.append((f"</{mark['tag'].lower()}", mark.start()))
            elif mark["empty"] is None:
                position = self._begin_element(mark["tag"].lower(), mark.start(), position)
        return lost + sum(len(self._wikitext) - place for _, place in self._open)

    def _close(self, opened: str) -> bool:
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
        if not self._open or not self._open[-1][0].startswith("</"):
            return
        name, place = self._open[-1]
        attributes = self._wikitext[place : mark.start()] if mark.start() - place < 1000 else "'"
        if attributes.count('"') % 2 or attributes.count("'") % 2:
            return  # inside of a quoted value
        self._open.pop()
        if mark[0] == ">":
            self._begin_element(name[2:], place, mark.end())

    def _begin_element(self, name: str, place: int, position: int) -> int:
        """Notes that an element is open; returns where its mark-up is looked at from."""
        if name in _SINGLE:
            return position
        if name in _OPAQUE and name not in self._endless:
            end = _END_OF_OPAQUE[name].search(self._wikitext, position)
            if end is not None:
                return end.end()
            self._endless.add(name)
        self._open.append((f"<{name}>", place))
        return position

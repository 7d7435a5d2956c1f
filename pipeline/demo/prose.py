"""Plain sentences out of documentation: reStructuredText and docstrings without their code."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]?\s+(?=[A-Z\"(])")
_NO_SENTENCE_END = re.compile(r"(?:\b(?:e\.g|i\.e|cf|vs|etc|Mr|Dr|no|resp|[A-Z])\.)$")
_ROLE = re.compile(r":[a-z:+]+:`~?([^`<]+?)(?:\s*<[^>]*>)?`")
_QUOTED_CODE = re.compile(r"``?([^`]+)``?_{0,2}")
_EMPHASIS = re.compile(r"(?<!\w)\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}(?!\w)")
_NOTE_MARK = re.compile(r"\s*\[\w{1,12}\]_?")
_LIST_MARK = re.compile(r"^(?:[-*+•]|\d{1,2}[.)]|\(\d{1,2}\)|\[\d+\])\s+")
_RULE = re.compile(r"^\s*([=\-~*^#+|_\"'`])[\s\1|+]*$")
_CODE = re.compile(r"[{}<>=\\|@$]|\w\(|_\w|\w_|://|--|::|\.\.\.|\w\.\w+\.\w")
_WORD = re.compile(r"[A-Za-z]+(?:['\u2019-][A-Za-z]+)*")
_SHORTEST_SENTENCE_WORDS = 5
_LEAST_WORD_FRACTION = 0.75


def split_into_sentences(text: str) -> list[str]:
    """The prose sentences of a text of documentation, in their order.

    Examples, signatures, tables, headings and literal blocks are left out, mark-up is removed, and
    so is every sentence that still looks like code.

    >>> split_into_sentences("Sorts the *items* in place. Try this::\\n\\n    sort([3, 1])\\n")
    ['Sorts the items in place.']
    """
    return [
        sentence
        for paragraph in prose_paragraphs(text)
        for sentence in _cut_sentences(remove_markup(paragraph))
        if reads_as_prose(sentence)
    ]


def prose_paragraphs(text: str) -> list[str]:
    """Runs of lines of equal indentation, each joined to one line.

    Left out are literal blocks (what is indented below a line ending in `::`), interactive
    examples, directives, headings and ruled tables.
    """
    paragraphs: list[str] = []
    lines: list[str] = []
    indentation = 0
    literal_below: int | None = None
    in_example = False

    def close() -> None:
        if lines:
            paragraphs.append(" ".join(lines))
            lines.clear()

    for raw in text.expandtabs().splitlines():
        line = raw.strip()
        if not line:
            close()
            in_example = False
            continue
        depth = len(raw) - len(raw.lstrip())
        if literal_below is not None and depth > literal_below:
            continue
        literal_below = None
        if _RULE.match(line):
            if len(lines) == 1:
                lines.clear()
            close()
            continue
        if line.startswith((">>>", "```", "$ ")) or in_example:
            close()
            in_example = True
            continue
        if line.startswith(".. "):
            close()
            literal_below = depth
            continue
        if _LIST_MARK.match(line) or (lines and depth != indentation):
            close()
        indentation = depth if not _LIST_MARK.match(line) else depth + _mark_width(line)
        lines.append(_LIST_MARK.sub("", line))
        if line.endswith("::"):
            close()
            literal_below = depth
    close()
    return paragraphs


def remove_markup(paragraph: str) -> str:
    """Roles, quotes around code, emphasis and references to notes become the bare words."""
    bare = _ROLE.sub(r"\1", paragraph)
    bare = _QUOTED_CODE.sub(r"\1", bare)
    bare = _EMPHASIS.sub(r"\1", bare)
    return " ".join(_NOTE_MARK.sub("", bare).split())


def reads_as_prose(sentence: str) -> bool:
    """Whether a line is a whole sentence made of words: not code, a heading or a fragment."""
    if not sentence[0].isupper() or sentence[-1] not in ".!?" or _CODE.search(sentence):
        return False
    words = _WORD.findall(sentence)
    letters = sum(map(len, words)) + len(words)
    return len(words) >= _SHORTEST_SENTENCE_WORDS and letters >= _LEAST_WORD_FRACTION * len(
        sentence
    )


def _mark_width(line: str) -> int:
    match = _LIST_MARK.match(line)
    return match.end() if match else 0


def _cut_sentences(paragraph: str) -> list[str]:
    sentences: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(paragraph):
        if _NO_SENTENCE_END.search(paragraph[start : match.start()]):
            continue
        sentences.append(paragraph[start : match.end()].strip())
        start = match.end()
    if paragraph[start:].strip():
        sentences.append(paragraph[start:].strip())
    return sentences

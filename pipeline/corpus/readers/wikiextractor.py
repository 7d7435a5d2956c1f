"""WikiExtractor's output, files named `wiki_00`: `<doc …>` elements, or with `--json` objects."""

from __future__ import annotations

import html
import re
from typing import Any

from bert_tf.base.errors import BertPipelineError
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.evidence import Evidence
from pipeline.corpus.layout.sketch import WIKI_BEGIN
from pipeline.corpus.raw_block import Texts
from pipeline.corpus.readers.splits import BYTE_ORDER_MARK

_BEGIN = re.compile(rb"^" + WIKI_BEGIN + rb"[^\n]*", re.MULTILINE)
_END = re.compile(rb"^</doc>[ \t\r]*$", re.MULTILINE)
_TITLE = re.compile(rb"title=([\"'])(.*)\1")
_FIRST_LINE = re.compile(rb"\s*([^\n]*)")
_JSON_KEYS = (b'{"id":', b'"url":', b'"title":', b'"text":')
_PEEKED_BYTES = 1 << 12
_URL_BYTES = 1 << 8
OUTSIDE = "text outside of <doc>"


def format_of_wiki_file(path: str) -> str | None:
    """Return the format of a file whose name does not say it: "text", "jsonl", or None."""
    try:
        with UncompressedFile(path) as file:
            head = file.read(_PEEKED_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
    except BertPipelineError:
        return None
    if head.startswith(WIKI_BEGIN):
        return "text"
    if head.startswith(b'{"url":') and b"curid=" in head[:_URL_BYTES]:  # of older versions
        return "jsonl"
    keys = _JSON_KEYS if b"\n" in head else _JSON_KEYS[:3]  # a long text may hide its key
    return "jsonl" if head.startswith(keys[0]) and all(key in head for key in keys) else None


def read_wiki_documents(data: bytes, first_line: int) -> tuple[Texts, Evidence]:
    """Return the texts of `<doc …>` elements without titles, and counts of text between them."""
    texts: list[bytes] = []
    lines: list[int] = []
    place = 0
    line = first_line
    begins = list(_BEGIN.finditer(data))
    stops = [*(begin.start() for begin in begins), len(data)]
    before = data[: stops[0]]
    end = _END.search(before)
    if end:  # a file that was cut begins with the rest of an element
        texts.append(_unescaped(before[: end.start()]))
        lines.append(first_line)
        before = before[end.end() :]
    outside = 1 if before.strip() else 0
    for begin, stop in zip(begins, stops[1:], strict=True):
        end = _END.search(data, begin.end(), stop)
        outside += bool(end and data[end.end() : stop].strip())
        start = begin.end()
        title = _TITLE.search(begin[0])
        first = _FIRST_LINE.match(data, start, stop)
        if title and first and _plain(title[2]) == _plain(first[1]):
            start = first.end()
        line += data.count(b"\n", place, begin.start())
        place = begin.start()
        text_stop = end.start() if end else stop
        texts.append(_unescaped(data[start:text_stop]))
        lines.append(line)
    return Texts.of_rows(texts, lines), Evidence(dropped={OUTSIDE: outside})


def wiki_text(row: dict[str, Any], text: str) -> str:
    """Return the text of a row; in WikiExtractor's rows, without its title and with plain `<`.

    Args:
        row: a JSON object.
        text: the value of its text column.
    """
    title = row.get("title")
    if not isinstance(title, str) or "curid=" not in str(row.get("url")) or "id" not in row:
        return text
    first, _, rest = text.partition("\n")
    text = rest if first.strip() == title.strip() else text
    return _unescaped(text.encode()).decode()


def _plain(title: bytes) -> bytes:
    return html.unescape(title.decode("utf-8", "replace")).strip().encode()


def _unescaped(text: bytes) -> bytes:
    """Undo `--html-safe`, the default."""
    for escaped, plain in ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&amp;", b"&")):
        text = text.replace(escaped, plain)
    return text

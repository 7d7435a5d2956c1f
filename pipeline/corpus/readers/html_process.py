"""Extracts the text of HTML pages in a process of its own, with limits on memory and CPU time.

`html_pages` runs this script, which imports nothing of the project, so that it is small.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from resiliparse.parse.html import ElementNode, HTMLTree

OUT_OF_MEMORY = 3  # exit status
# First bytes of answers.
TEXT = b"T"
BAD_ENCODING = b"E"
BROKEN = b"B"
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_META = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_.:-]+)", re.IGNORECASE)
_META_BYTES = 4096
_REPLACEMENT = "\ufffd".encode()
_LETTERS_PER_FAULT = 10  # beyond ASCII, in UTF-8 with stray bytes
_FEWEST_LETTERS = 8  # that tell an encoding
_PAIRS = re.compile(rb"[\x81-\xfe][\x41-\xfe]")
_SYLLABLES = 0.9  # of the pairs, at least: Hangul in EUC-KR
_SENTENCE = 15  # characters of an item that may be a sentence
# Marks that end a sentence, before a blank or in scripts without blanks.
_END = re.compile(
    "[.!?\u2026\u06d4\u061f\u0964\u17d4\u104b\u1362\u0589](?:\\s|$)|[\u3002\uff01\uff1f]"
)


def load_extractor(name: str) -> Callable[[str], str]:
    """Return the function from HTML to text for `CorpusSection.html_extractor`, with settings."""
    if name == "trafilatura":
        from trafilatura import extract

        # Like FineWeb, but without the cache of repeated lines, so that the order of pages does
        # not matter.
        return lambda html: extract(html, favor_precision=True, include_comments=False) or ""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    def extract_text(html: str) -> str:
        tree = HTMLTree.parse(html)
        _keep_lists(tree)
        return extract_plain_text(tree, main_content=True, alt_texts=False)

    return extract_text


def _keep_lists(tree: HTMLTree) -> None:
    """Make paragraphs of lists of sentences.

    Close to <body>, the extractor drops every <ul> as navigation.
    """
    lists = list(tree.body.query_selector_all("ul")) if tree.body else []
    lists_of_sentences = [items for items in lists if _has_sentences(items)]
    for items in lists_of_sentences:
        for item in list(items.children):
            if item.tag == "li":
                _rename(tree, item, "p")
        _rename(tree, items, "div")


def _rename(tree: HTMLTree, element: ElementNode, name: str) -> None:
    other = cast("ElementNode", tree.create_element(name))
    for attribute in element.attrs:
        other.setattr(attribute, element.getattr(attribute) or "")
    for child in list(element.child_nodes):
        other.append_child(child)
    element.replace_with(other)


def _has_sentences(items: ElementNode) -> bool:
    """Whether sentences end in at least half of a list's items, and links are less than half."""
    texts = [item.text or "" for item in items.get_elements_by_tag_name("li")]
    sentences = [text for text in texts if len(text) >= _SENTENCE and _END.search(text)]
    if not texts or 2 * len(sentences) < len(texts):
        return False
    links = sum(len(link.text or "") for link in items.get_elements_by_tag_name("a"))
    return 2 * links < sum(map(len, texts))


def decode(page: bytes, charset: str) -> str:
    """Decode a page; a character cut off at its end is left out.

    A byte-order mark decides, then whether the bytes are UTF-8, `charset` (of HTTP, or empty), the
    page's <meta>, and detection. In UTF-8, a few stray bytes become U+FFFD, as in browsers.

    Raises:
        UnicodeError: the page is not in the encoding that it names, nor in UTF-8.
    """
    fault = None
    if not page.startswith(tuple(_MARKS)):
        text = _as_utf8(page)
        if text is not None:
            return text
    for encoding in _encodings(page, charset):
        try:
            return codecs.getincrementaldecoder(encoding)().decode(page).removeprefix("\ufeff")
        except UnicodeError as error:
            fault = fault or error
    assert fault is not None
    raise fault


def _as_utf8(page: bytes) -> str | None:
    """Return the text of a page that is UTF-8 beyond ASCII, ignoring its declaration; else None.

    Text in other encodings is valid UTF-8 only by chance, in a few letters.
    """
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(page)
    faults = text.count("\ufffd") - page.count(_REPLACEMENT)
    letters = len(text) - len(text.encode("ascii", "ignore")) - faults
    if not letters or faults * _LETTERS_PER_FAULT > letters:
        return None
    return text


def _is_korean(page: bytes) -> bool:
    """Whether a page is in EUC-KR: nearly all pairs of bytes beyond ASCII are syllables."""
    pairs = _PAIRS.findall(page)
    syllables = sum(0xB0 <= pair[0] <= 0xC8 and pair[1] >= 0xA1 for pair in pairs)
    return len(pairs) >= _FEWEST_LETTERS and syllables >= _SYLLABLES * len(pairs)


def _encodings(page: bytes, charset: str) -> Iterator[str]:
    """Yield the encodings to try, in the order of `decode`."""
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

    for mark, encoding in _MARKS.items():
        if page.startswith(mark):
            yield encoding
            return
    meta = _META.search(page, 0, _META_BYTES)
    in_page = meta[1].decode("ascii") if meta else ""
    if in_page.lower().startswith("utf-16"):  # wrong, since <meta> was read as ASCII
        in_page = "utf-8"
    encodings = [map_encoding_to_html5(name, fallback_utf8=False) for name in (charset, in_page)]
    if not any(encodings):
        encodings = ["euc-kr"] if _is_korean(page) else [detect_encoding(page)]
    yield from filter(None, encodings)
    yield "utf-8"


def _answer(extract: Callable[[str], str], page: bytes, charset: str) -> bytes:
    """Return a first byte (`TEXT`, `BAD_ENCODING` or `BROKEN`), and the text or the fault."""
    try:
        return TEXT + extract(decode(page, charset)).encode()
    except MemoryError:
        raise
    except UnicodeDecodeError as error:
        return BAD_ENCODING + f"{error.encoding}, at byte {error.start + 1}".encode()
    except BaseException as error:  # also of Rust; messages may hold addresses of memory
        return BROKEN + type(error).__name__.encode()


def main(name: str, memory_bytes: str, cpu_seconds: str, connection: str) -> None:
    """Answer batches of pages, each with the encoding that HTTP names, page by page."""
    extract = load_extractor(name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes), int(memory_bytes)))
    with contextlib.suppress(EOFError, OSError), Connection(int(connection)) as parent:
        parent.send_bytes(b"")
        while True:
            for page, charset in parent.recv():
                signal.setitimer(signal.ITIMER_PROF, float(cpu_seconds))  # SIGPROF ends the process
                answer = _answer(extract, page, charset)
                signal.setitimer(signal.ITIMER_PROF, 0)
                parent.send_bytes(answer)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except MemoryError:
        os._exit(OUT_OF_MEMORY)

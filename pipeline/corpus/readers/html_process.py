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

OUT_OF_MEMORY = 3  # exit status
TEXT, BAD_ENCODING, BROKEN = b"T", b"E", b"B"  # how answers begin
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_META = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_.:-]+)", re.IGNORECASE)
_META_BYTES = 4096


def load_extractor(name: str) -> Callable[[str], str]:
    """The function from HTML to text of `CorpusSection.html_extractor`, with its settings."""
    if name == "trafilatura":
        from trafilatura import extract

        # As in FineWeb, without its cache of repeated lines, by which order would matter.
        return lambda html: extract(html, favor_precision=True, include_comments=False) or ""
    from resiliparse.extract.html2text import extract_plain_text

    return lambda html: extract_plain_text(html, main_content=True, alt_texts=False)


def decode(page: bytes, charset: str) -> str:
    """Decodes a page; a character cut off at its end is left out.

    A byte-order mark decides, then `charset` (of HTTP, or empty), the page's <meta>, and detection.
    Raises UnicodeError if the page is not in the encoding that it names, nor in UTF-8.
    """
    fault = None
    for encoding in _encodings(page, charset):
        try:
            return codecs.getincrementaldecoder(encoding)().decode(page).removeprefix("\ufeff")
        except UnicodeError as error:
            fault = fault or error
    assert fault is not None
    raise fault


def _encodings(page: bytes, charset: str) -> Iterator[str]:
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

    for mark, encoding in _MARKS.items():
        if page.startswith(mark):
            yield encoding
            return
    meta = _META.search(page, 0, _META_BYTES)
    in_page = meta[1].decode("ascii") if meta else ""
    if in_page.lower().startswith("utf-16"):  # no: <meta> could not have been read
        in_page = "utf-8"
    found = [map_encoding_to_html5(name, fallback_utf8=False) for name in (charset, in_page)]
    yield from filter(None, found if any(found) else [detect_encoding(page)])
    yield "utf-8"


def _answer(extract: Callable[[str], str], page: bytes, charset: str) -> bytes:
    try:
        return TEXT + extract(decode(page, charset)).encode()
    except MemoryError:
        raise
    except UnicodeDecodeError as error:
        return BAD_ENCODING + f"{error.encoding}, at byte {error.start + 1}".encode()
    except BaseException as error:  # also of Rust; messages may hold addresses of memory
        return BROKEN + type(error).__name__.encode()


def main(name: str, memory_bytes: str, cpu_seconds: str, connection: str) -> None:
    """Answers batches of pages, each with the encoding that HTTP names, page by page."""
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

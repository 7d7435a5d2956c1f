"""MediaWiki XML dumps (`Special:Export`, dumps.wikimedia.org): a document per article.

Of several revisions the last counts. Each page is parsed on its own, so damage stays in a page.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.dialect import INVALID_UTF8
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.raw_block import RawBlock
from pipeline.corpus.readers.splits import Chunk, ChunkReader, DocumentOutcome, collect
from pipeline.corpus.readers.wikitext import WikitextError, plain_text
from pipeline.corpus.readers.wikitext_rendering import thousands_of

OTHER_NAMESPACE = "not in the main namespace"
REDIRECT = "redirect"
NOT_WIKITEXT = "not wikitext"
BROKEN_XML = "broken XML"
BROKEN_PAGE = "broken page"
BROKEN_WIKITEXT = "broken wikitext"
_PEEKED_BYTES = 1 << 20  # of a dump, which hold the names of its namespaces
_PAGE = b"<page>"
_PAGE_END = b"</page>"
_ROOT = re.compile(rb"<mediawiki[\s>]")
_NAMESPACE = re.compile(rb'<namespace key="(-?\d+)"[^<>]*>([^<]+)</namespace>')
_LANGUAGE = re.compile(rb'<mediawiki\s[^<>]*\bxml:lang="([^"<>]*)"')
_HIDDEN_KEYS = (b"-2", b"6", b"14")  # media, files, categories
_ALWAYS_HIDDEN = ("category", "file", "image", "media")
_REDIRECT = re.compile(r"\s*#redirect\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class MediaWikiReader(ChunkReader):
    """Reads the articles of a MediaWiki dump (XML) without redirects and other namespaces.

    Attributes:
        hidden_namespaces: lower-case names of the namespaces whose links do not show.
        thousands: separator in numbers of the dump's language.
    """

    hidden_namespaces: frozenset[str]
    thousands: str = ","

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> MediaWikiReader:
        """Read the dump's names for files and categories; raise UsageError if it is no dump."""
        with UncompressedFile(path, config.encoding) as file:
            head = file.read(_PEEKED_BYTES)
        if not _ROOT.search(head):
            raise UsageError(
                f"{path}: is no MediaWiki dump (it lacks <mediawiki>); of XML only those are read"
            )
        names = {
            name.decode("utf-8", "replace").strip().lower()
            for key, name in _NAMESPACE.findall(head.partition(_PAGE)[0])
            if key in _HIDDEN_KEYS
        }
        language = _LANGUAGE.search(head)
        thousands = thousands_of(language[1].decode("utf-8", "replace") if language else "en")
        return cls(frozenset(names.union(_ALWAYS_HIDDEN)), thousands)

    def find_last_border(self, data: bytes) -> int:
        return max(data.rfind(_PAGE), 0)

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        return collect(path, chunk, self._pages(path, chunk))

    def _pages(self, path: str, chunk: Chunk) -> Iterator[DocumentOutcome]:
        for number, (line, stretch) in enumerate(_stretches(chunk)):
            is_head = chunk.index == 0 and number == 0
            if stretch.startswith(_PAGE):
                yield self._article(path, line, stretch)
                continue
            frame = stretch.partition(b"<mediawiki")[0].replace(b"</mediawiki>", b"")
            if not is_head and frame.strip():
                blank = len(stretch) - len(stretch.lstrip())
                first_line = line + stretch.count(b"\n", 0, blank)
                yield Reject(path, first_line, BROKEN_XML, "text outside of a page")

    def _article(self, path: str, line: int, data: bytes) -> DocumentOutcome:
        page = _parse(path, line, data)
        if isinstance(page, Reject):
            return page
        namespace = page.findtext("ns")
        if namespace is None:
            return Reject(path, line, BROKEN_PAGE, "it has no <ns>")
        if namespace.strip() != "0":
            return OTHER_NAMESPACE
        if page.find("redirect") is not None:
            return REDIRECT
        revisions = page.findall("revision")
        if not revisions:
            return Reject(path, line, BROKEN_PAGE, "it has no <revision>")
        if revisions[-1].findtext("model", "wikitext").strip() != "wikitext":
            return NOT_WIKITEXT
        source = revisions[-1].findtext("text") or ""
        if _REDIRECT.match(source):
            return REDIRECT
        try:
            return line, plain_text(source, self.hidden_namespaces, self.thousands).encode("utf-8")
        except WikitextError as error:
            title = page.findtext("title", "")
            return Reject(path, line, BROKEN_WIKITEXT, f"page {title!r}: {error}")


def _stretches(chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    """Return the pages of a chunk and the text between them, with their first lines."""
    data = chunk.data
    line = chunk.first_line
    position = 0
    while position < len(data):
        following = data.find(_PAGE, position + 1)
        stop = following if following >= 0 else len(data)
        if data.startswith(_PAGE, position):
            end = data.find(_PAGE_END, position, stop)
            stop = end + len(_PAGE_END) if end >= 0 else stop
        yield line, data[position:stop]
        line += data.count(b"\n", position, stop)
        position = stop


def _parse(path: str, line: int, data: bytes) -> ElementTree.Element | Reject:
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        error_line, column = error.position
        place = line + error_line - 1
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as bad:
            position = bad.start - data.rfind(b"\n", 0, bad.start)
            bad_line = line + data.count(b"\n", 0, bad.start)
            return Reject(path, bad_line, INVALID_UTF8, f"at byte {position}")
        fault = str(error).partition(":")[0]
        return Reject(path, place, BROKEN_XML, f"{fault} at byte {column + 1}")

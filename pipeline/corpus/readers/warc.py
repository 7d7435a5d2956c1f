"""WARC files: a document per HTML page or, in WET files, per text of a page.

Records are found by their lengths. After a damaged record, reading continues with the next header,
and after damaged gzip data with the next member. The line of a document or reject is the number of
its record in the file, from 1.
"""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self, TypeAlias

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.compression import uncompressed
from bert_tf.data.tables.dialect import compression_of
from bert_tf.data.tables.rejects import Reject
from pipeline.beam.files import UncompressedFile
from pipeline.corpus.raw_block import RawBlock
from pipeline.corpus.readers.gzip_members import (
    DAMAGE,
    SIGNATURE,
    read_frames,
    read_members,
    unpack_members,
)
from pipeline.corpus.readers.html_pages import Extracted, HtmlReader, extract_pages
from pipeline.corpus.readers.splits import (
    BYTE_ORDER_MARK,
    BlockReader,
    Chunk,
    DocumentOutcome,
    collect,
)

if TYPE_CHECKING:
    from fastwarc.warc import WarcRecord

NOT_HTML = "not HTML"
NOT_OK = "HTTP status other than 200"
NO_CONTENT = "revisit, continuation or unknown record"
BROKEN_RECORD = "broken WARC record"
BROKEN_HTTP = "broken HTTP response"
TOO_LONG = "record is too long"
_PEEKED_BYTES = 8  # a byte-order mark and SIGNATURE
_START = re.compile(SIGNATURE + rb"\d\.\d{1,3}\r?\n(?=[A-Za-z-]{1,30}:)")
_MOST_START_BYTES = 48  # at least the longest text that _START and its lookahead match
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MOST_HEAD_BYTES = 1 << 16  # a longer header is taken as damaged
_MOST_HELD_BYTES = 1 << 18  # of a damaged record, before a piece of it is cut off
_LENGTH = re.compile(rb"\nContent-Length:[ \t]*(\d{1,18})[ \t]*\r?\n", re.IGNORECASE)
_LINE_ENDS = re.compile(rb"[\r\n]*")
_RECORD_ENDS = (b"\r\n\r\n", b"\n\n")
# Names of fields, which the standard allows in any case; FastWARC knows them as they are written.
_FIELD = re.compile(rb"^(WARC|Content)((?:-[A-Za-z]+)+)(?=[ \t]*:)", re.MULTILINE | re.IGNORECASE)
_IN_CAPITALS = {b"-id": b"-ID", b"-uri": b"-URI", b"-ip": b"-IP"}
# Beginnings of compressed and chunked bodies.
_GZIP = b"\x1f\x8b"
_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,8}[ \t]*(?:;[^\r\n]*)?\r\n")
_TAG = re.compile(rb"<[A-Za-z!?/]")
# Beginnings of other content that is sent as HTML: style sheets and scripts, then documents, data
# and feeds.
_STYLES = re.compile(
    rb"[^{}<>]{1,200}\{[^{}<>]*:[^{}<>]*\}|\s*(?:function\b|var |window\.|\(function)"
)
_OTHER_MEDIA = re.compile(
    rb"\s*(?:%PDF-|%!PS|\{\\rtf|BEGIN:V|\{\s*[\"}]|\[\s*[\[{\"\d\]-]"
    rb"|(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?"
    rb"<(?:rss|feed|rdf:RDF|svg|urlset|sitemapindex|opml)\b)"
    rb"|\x89PNG|\xff\xd8\xff|GIF8|PK\x03\x04|\x1f\x8b|wOF[F2]|RIFF|OggS|ID3",
    re.DOTALL,
)
_CODE = re.compile(rb"[{}();=]")
_SNIFFED_BYTES = 1 << 12  # of a body, which show its format
# Brackets and signs of a program among these bytes, if there is no tag; prose has fewer.
_MOST_CODE = 1 / 20
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_HTML = ("text/html", "application/xhtml+xml")
# Pages of HTML that are extracted at a time; either limit ends a batch.
_BATCH_BYTES = 1 << 22
_BATCH_PAGES = 64


@dataclasses.dataclass(frozen=True)
class _Page:
    record: int  # its number in the file
    url: str
    content: bytes
    charset: str
    is_html: bool  # otherwise it is the text of a WET file


# A string is the reason why a page is left out, and no fault.
_PageOutcome: TypeAlias = _Page | Reject | str


@dataclasses.dataclass(frozen=True)
class _Span:
    """The place of a record in bytes."""

    begin: int
    head: int  # the end of its header
    stop: int
    fault: str = ""  # of its content, if that is damaged or too long


@dataclasses.dataclass(frozen=True)
class WarcReader(HtmlReader):
    """Reads the main text of the HTML pages of a WARC file, and the texts of a WET file.

    Records are found by their signature, so a damaged one costs only itself. Members of gzip and
    frames of zstd that hold one record each can be read from any of them.
    """

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> Self:
        """Return the reader.

        Raises:
            UsageError: the file is not a WARC file, or a package is missing.
        """
        reader = super().for_file(path, config)
        with _open(path) as file:
            if not file.read(_PEEKED_BYTES).removeprefix(BYTE_ORDER_MARK).startswith(SIGNATURE):
                raise UsageError(f"{path}: is not a WARC file: it does not begin with WARC/")
        return reader

    def _open(self, path: str) -> UncompressedFile:
        return _open(path)

    def block_reader(self, path: str) -> BlockReader | None:
        readers: dict[str | None, BlockReader] = {"gzip": read_members, "zstd": read_frames}
        return readers.get(compression_of(path)) or super().block_reader(path)

    def find_last_border(self, data: bytes) -> int:
        last = None
        for record in _find_records(data, self.largest_document, is_end=False):
            last = record
        if last is not None and (last.begin or not last.fault):
            return last.begin
        # The rest of a damaged or long record, up to the next header, is skipped in pieces.
        if len(data) <= _MOST_HELD_BYTES:
            return 0
        border = len(data) - _MOST_START_BYTES
        # A rest that began with a signature would count as a record, and this is none: records are
        # found above.
        if data.startswith(SIGNATURE, border):
            border += 1
        return border

    def count_lines(self, data: bytes, stop: int) -> int:
        return sum(1 for _ in _find_records(data[:stop], self.largest_document, is_end=True))

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        urls: list[bytes] = []
        return collect(path, chunk, self._documents(path, chunk, urls), {"url": urls})

    def _documents(self, path: str, chunk: Chunk, urls: list[bytes]) -> Iterator[DocumentOutcome]:
        for batch in _batches(self._pages(path, chunk)):
            html = [page for page in batch if isinstance(page, _Page) and page.is_html]
            contents = [(page.content, page.charset) for page in html]
            answers = iter(extract_pages(self.extractor, contents))
            for page in batch:
                if not isinstance(page, _Page):
                    yield page
                    continue
                answer = next(answers) if page.is_html else Extracted(page.content)
                if answer.reason:
                    detail = "; ".join(filter(None, [answer.detail, page.url]))
                    yield Reject(path, page.record, answer.reason, detail)
                else:
                    urls.append(page.url.encode("utf-8", "surrogateescape"))
                    yield page.record, answer.text

    def _pages(self, path: str, chunk: Chunk) -> Iterator[_PageOutcome]:
        records = _find_records(chunk.data, self.largest_document, is_end=True)
        for number, span in enumerate(records, chunk.first_line):
            if span.fault:
                reason = TOO_LONG if span.fault == TOO_LONG else BROKEN_RECORD
                place = f"at byte {chunk.offset + span.begin:,} of the uncompressed file"
                damage = DAMAGE.search(chunk.data, span.begin, span.stop)
                detail = damage[1].decode() if damage else f"{span.fault}, {place}"
                yield Reject(path, number, reason, detail)
                continue
            data = chunk.data[span.begin : span.stop]
            page = _page_of(data, path, number, self.largest_document)
            if page is not None:
                yield page


def _open(path: str) -> UncompressedFile:
    is_gzip = compression_of(path) == "gzip"
    return UncompressedFile(path, None, unpack_members if is_gzip else uncompressed)


def _batches(items: Iterator[_PageOutcome]) -> Iterator[list[_PageOutcome]]:
    """Yield pages and the outcomes between them in batches of limited size."""
    batch: list[_PageOutcome] = []
    size = 0
    pages = 0
    for page in items:
        batch.append(page)
        if isinstance(page, _Page):
            size += len(page.content)
            pages += page.is_html
        if size >= _BATCH_BYTES or pages >= _BATCH_PAGES:
            yield batch
            batch = []
            size = 0
            pages = 0
    yield batch


def _page_of(data: bytes, path: str, number: int, longest: int) -> _Page | Reject | str | None:
    """Return the page of a record, with HTTP's encodings undone.

    Args:
        data: the record.
        path: the file.
        number: of the record in the file, from 1.
        longest: bytes of a page.

    Returns:
        A page, a reject, the reason why it is left out, or None for a record that is no page.
    """
    from fastwarc.warc import WarcRecordType

    try:
        record = _record_of(data)
    except (OSError, ValueError) as error:
        return Reject(path, number, BROKEN_RECORD, str(error))
    kind = record.record_type
    if kind in (WarcRecordType.warcinfo, WarcRecordType.request, WarcRecordType.metadata):
        return None
    if kind not in (WarcRecordType.response, WarcRecordType.resource, WarcRecordType.conversion):
        return NO_CONTENT
    headers = record.headers
    url = (headers.get("WARC-Target-URI") or record.record_id or "").strip("<>")
    media = (headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    charset = ""
    try:
        if record.is_http:
            record = _with_http(record, data)
            if record.http_headers is None or record.http_headers.status_code is None:
                raise OSError("no status code")
            if record.http_headers.status_code != 200:
                return NOT_OK
            media = (record.http_content_type or "").lower()
            charset = record.http_charset or ""
        is_text = kind == WarcRecordType.conversion and media == "text/plain"
        if media not in _HTML and not is_text:
            return NOT_HTML
        content = record.reader.read(longest + 1)
    except (OSError, ValueError) as error:
        return Reject(path, number, BROKEN_HTTP, f"{error}; {url}")
    if len(content) > longest:
        return Reject(path, number, TOO_LONG, url)
    if not is_text and not _may_be_html(content):
        return NOT_HTML
    return _Page(number, url, content, charset, not is_text)


def _record_of(data: bytes) -> WarcRecord:
    """Parse a record, with the names of its fields in the standard's spelling."""
    from fastwarc.warc import WarcRecord

    head = _HEAD_END.search(data)
    end = head.end() if head else 0
    named = _FIELD.sub(_field_name, data[:end]) + data[end:]
    return WarcRecord.from_reader(io.BytesIO(named), quirks_mode=True)


def _field_name(name: re.Match[bytes]) -> bytes:
    """Return the name of a field as the standard writes it: `WARC-Target-URI`, `Content-Length`."""
    words = [b"-" + word for word in name[2].lower().split(b"-")[1:]]
    first = b"WARC" if name[1].upper() == b"WARC" else b"Content"
    return first + b"".join(_IN_CAPITALS.get(word, word.title()) for word in words)


def _with_http(record: WarcRecord, data: bytes) -> WarcRecord:
    """Parse the HTTP header, so that reading the record decodes its body.

    A header may name an encoding although the body was stored decoded. So the beginning of the body
    is checked.
    """
    record.parse_http(auto_decode="none", quirks_mode=True)
    headers = record.http_headers
    if headers is None:
        return record
    is_chunked = "chunked" in (headers.get("Transfer-Encoding") or "").lower()
    coding = (headers.get("Content-Encoding") or "").lower()
    if not is_chunked and not coding:
        return record
    body = record.reader.read(_SNIFFED_BYTES)
    is_chunked = is_chunked and _CHUNK.match(body) is not None
    is_coded = coding not in ("", "identity") and (is_chunked or not _is_plain(body, coding))
    again = _record_of(data)
    if is_chunked:
        again.parse_http(auto_decode="all" if is_coded else "transfer", quirks_mode=True)
    else:
        again.parse_http(auto_decode="content" if is_coded else "none", quirks_mode=True)
    return again


def _is_plain(body: bytes, coding: str) -> bool:
    """Whether a body was decoded before it was stored."""
    if "gzip" in coding:
        return not body.startswith(_GZIP)
    return body.lstrip().startswith((b"<", b"\xef\xbb\xbf<"))


def _may_be_html(content: bytes) -> bool:
    """Whether a body that is sent as HTML may be HTML, and no other format."""
    head = content[:_SNIFFED_BYTES]
    if head.startswith(_WIDE_MARKS):
        return True
    if _OTHER_MEDIA.match(head) is not None or b"\0" in head:
        return False
    if _TAG.search(content) is not None:
        return True
    return _STYLES.match(head) is None and len(_CODE.findall(head)) <= _MOST_CODE * len(head)


def _find_records(data: bytes, longest: int, *, is_end: bool) -> Iterator[_Span]:
    """Yield the records that begin in data.

    Args:
        data: some bytes of the file.
        longest: bytes of a record.
        is_end: whether the last record ends with the data; otherwise it may continue.
    """
    begin = _begin_of_record(data, 0)
    while begin < len(data):
        head, stop, fault = _measure(data, begin, longest, is_end=is_end)
        if stop < 0:
            following = _begin_of_record(data, head) if fault else len(data)
            stop = following
        else:
            following = _after_line_ends(data, stop)
            if not data.startswith(SIGNATURE, following):
                following = _begin_of_record(data, following)
        yield _Span(begin, head, stop, fault)
        begin = following


def _begin_of_record(data: bytes, start: int) -> int:
    """Return where the next record begins; the end of the data without any."""
    if start == 0 and data.startswith(SIGNATURE):
        return 0
    match = _START.search(data, start)
    return match.start() if match else len(data)


def _after_line_ends(data: bytes, place: int) -> int:
    """Return the first place that has no line end."""
    match = _LINE_ENDS.match(data, place)
    assert match is not None  # it may be empty
    return match.end()


def _measure(data: bytes, begin: int, longest: int, *, is_end: bool) -> tuple[int, int, str]:
    """Find the content of a record by its length.

    Args:
        data: some bytes of the file.
        begin: where the record begins.
        longest: bytes of a record.
        is_end: see `_find_records`.

    Returns:
        Where the content begins; where it ends, -1 if unknown; and a fault. -1 with a fault means
        that the record is damaged; -1 without one, that it may continue after the data.
    """
    head = _HEAD_END.search(data, begin, begin + _MOST_HEAD_BYTES)
    if head is None:
        is_broken = is_end or len(data) >= begin + _MOST_HEAD_BYTES
        return begin + len(SIGNATURE), -1, "its header does not end" if is_broken else ""
    length = _LENGTH.search(data, begin, head.end())
    if length is None:
        return head.end(), -1, "no Content-Length"
    stop = head.end() + int(length[1])
    if stop - begin + _MOST_START_BYTES > longest:
        return head.end(), -1, TOO_LONG
    following = _after_line_ends(data, stop)
    if data.startswith(SIGNATURE, following) or (is_end and stop <= len(data) == following):
        return head.end(), stop, ""
    if not is_end and len(data) - following < len(SIGNATURE):
        return head.end(), -1, ""
    # The length is right, but other bytes follow. With a damage mark among them, the end of this
    # record was lost.
    if data.startswith(_RECORD_ENDS, stop):
        junk_end = _begin_of_record(data, stop)
        if DAMAGE.search(data, stop, junk_end) is None:
            if is_end or junk_end < len(data):
                return head.end(), stop, ""
            return head.end(), -1, ""
    return head.end(), -1, "not as long as its Content-Length"

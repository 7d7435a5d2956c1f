"""WARC files: a document per HTML page or, in WET files, per text of a page.

Records are found by their lengths; after a damaged one, reading continues with the next header, and
after damaged gzip data with the next member.
The line of a document or reject is the number of its record in the file, from 1.
"""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator
from typing import Self

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
from pipeline.corpus.readers.splits import BYTE_ORDER_MARK, BlockReader, Chunk, Found, collect

NOT_HTML = "not HTML"
NOT_OK = "HTTP status other than 200"
NO_CONTENT = "revisit, continuation or unknown record"
BROKEN_RECORD = "broken WARC record"
BROKEN_HTTP = "broken HTTP response"
TOO_LONG = "record is too long"
_PEEKED_BYTES = 8
_START = re.compile(SIGNATURE + rb"\d\.\d{1,3}\r?\n(?=[A-Za-z-]{1,30}:)")
_MOST_START_BYTES = 48
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MOST_HEAD_BYTES = 1 << 16
_MOST_HELD_BYTES = 1 << 18
_LENGTH = re.compile(rb"\nContent-Length:[ \t]*(\d{1,18})[ \t]*\r?\n", re.IGNORECASE)
_LINE_ENDS = re.compile(rb"[\r\n]*")
_HTML = ("text/html", "application/xhtml+xml")
_BATCH_BYTES, _BATCH_PAGES = 1 << 22, 64


@dataclasses.dataclass(frozen=True)
class _Page:
    record: int  # its number in the file
    url: str
    content: bytes
    charset: str
    is_html: bool  # otherwise it is the text of a WET file


@dataclasses.dataclass(frozen=True)
class _Span:
    """Where a record begins, its content begins, and it ends; `fault` if its content is damaged."""

    begin: int
    head: int
    stop: int
    fault: str = ""


@dataclasses.dataclass(frozen=True)
class WarcReader(HtmlReader):
    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> Self:
        """Raises UsageError if the file is no WARC file or a package is missing."""
        reader = super().for_file(path, config)
        with _open(path) as file:
            if not file.read(_PEEKED_BYTES).removeprefix(BYTE_ORDER_MARK).startswith(SIGNATURE):
                raise UsageError(f"{path}: is no WARC file, which begins with WARC/")
        return reader

    def _open(self, path: str) -> UncompressedFile:
        return _open(path)

    def block_reader(self, path: str) -> BlockReader | None:
        readers: dict[str | None, BlockReader] = {"gzip": read_members, "zstd": read_frames}
        return readers.get(compression_of(path)) or super().block_reader(path)

    def find_last_border(self, data: bytes) -> int:
        *_, last = (None, *_find_records(data, self.largest_document, is_end=False))
        if last is not None and (last.begin or not last.fault):
            return last.begin
        # The rest of a damaged or long record, up to the next header, is skipped in pieces.
        if len(data) <= _MOST_HELD_BYTES:
            return 0
        border = len(data) - _MOST_START_BYTES
        return border + data.startswith(SIGNATURE, border)

    def count_lines(self, data: bytes, stop: int) -> int:
        return sum(1 for _ in _find_records(data[:stop], self.largest_document, is_end=True))

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        urls: list[bytes] = []
        return collect(path, chunk, self._documents(path, chunk, urls), {"url": urls})

    def _documents(self, path: str, chunk: Chunk, urls: list[bytes]) -> Iterator[Found]:
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

    def _pages(self, path: str, chunk: Chunk) -> Iterator[_Page | Reject | str]:
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


def _batches(found: Iterator[_Page | Reject | str]) -> Iterator[list[_Page | Reject | str]]:
    batch: list[_Page | Reject | str] = []
    size = pages = 0
    for page in found:
        batch.append(page)
        if isinstance(page, _Page):
            size += len(page.content)
            pages += page.is_html
        if size >= _BATCH_BYTES or pages >= _BATCH_PAGES:
            yield batch
            batch, size, pages = [], 0, 0
    yield batch


def _page_of(data: bytes, path: str, number: int, longest: int) -> _Page | Reject | str | None:
    """The page of a record, decoded from what HTTP makes of it; None if there cannot be one."""
    from fastwarc.warc import WarcRecord, WarcRecordType

    try:
        record = WarcRecord.from_reader(io.BytesIO(data), quirks_mode=True)
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
            record.parse_http(auto_decode="all", quirks_mode=True)
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
    return _Page(number, url, content, charset, not is_text)


def _find_records(data: bytes, longest: int, *, is_end: bool) -> Iterator[_Span]:
    """Yields the records that begin in data; the last may go on behind it unless `is_end`."""
    begin = _begin_of_record(data, 0)
    while begin < len(data):
        head, stop, fault = _measure(data, begin, longest, is_end=is_end)
        if stop < 0:
            following = _begin_of_record(data, head) if fault else len(data)
            stop = following
        else:
            following = _after_line_ends(data, stop)
        yield _Span(begin, head, stop, fault)
        begin = following


def _begin_of_record(data: bytes, start: int) -> int:
    if start == 0 and data.startswith(SIGNATURE):
        return 0
    match = _START.search(data, start)
    return match.start() if match else len(data)


def _after_line_ends(data: bytes, place: int) -> int:
    match = _LINE_ENDS.match(data, place)
    assert match is not None  # it may be empty
    return match.end()


def _measure(data: bytes, begin: int, longest: int, *, is_end: bool) -> tuple[int, int, str]:
    """Where a record's content begins and ends, negative if that is unknown, and its fault."""
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
    return head.end(), -1, "not as long as its Content-Length"

"""WARC and WET files: pages are documents, and each other record is counted or no page."""

import gzip
import io
import random
import re
import zlib

import pytest
import zstandard
from behavior.examples import fewer_examples
from behavior.readers import check_reader, raw_texts, read_corpus
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError, UsageError
from pipeline.corpus.readers.html_pages import BAD_ENCODING
from pipeline.corpus.readers.warc import (
    BROKEN_HTTP,
    BROKEN_RECORD,
    NO_CONTENT,
    NOT_HTML,
    NOT_OK,
    TOO_LONG,
)

warc = pytest.importorskip("fastwarc.warc")
html2text = pytest.importorskip("resiliparse.extract.html2text")
pytestmark = pytest.mark.slow  # starts processes

HTML = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"


def record(content, kind="response", media="application/http", url="http://a.org/", length=None):
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n"
        "WARC-Record-ID: <urn:uuid:a0a0a0a0-0000-4000-8000-000000000000>\r\n"
        f"Content-Type: {media}\r\nContent-Length: {length or len(content)}\r\n\r\n"
    )
    return head.encode() + content + b"\r\n\r\n"


def response(body, http=HTML, **values):
    return record(http.encode() + b"\r\n" + body, **values)


def page(number):
    return f"<html><body><p>Page {number} has one sentence.</p></body></html>".encode()


def sentence(number):
    return [f"Page {number} has one sentence."]


INFO = record(b"software: x\r\n", "warcinfo", "application/warc-fields")
REQUEST = record(b"GET / HTTP/1.1\r\n\r\n", "request")


def test_pages_are_documents_known_by_their_records(tmp_path):
    content = INFO + b"".join(
        REQUEST
        + response(page(n), url=f"https://{'ab'[n % 2]}.org/{n}")
        + record(b"a: b", "metadata", "application/warc-fields")
        for n in range(6)
    )
    found = check_reader(tmp_path, "a.warc", content)
    assert found.documents == [sentence(n) for n in range(6)]
    assert (found.rejects, found.dropped) == ([], {})
    lines = [line for block in found.blocks for line in block.document_lines.tolist()]
    assert lines == [3 * n + 3 for n in range(6)]
    assert len(read_corpus(tmp_path / "a.warc", 1).splits) > 12
    tallies = found.blocks[0].evidence.tallies
    assert (tallies["domain/a.org"], tallies["domain/b.org"]) == (3, 3)


def test_each_record_may_be_a_gzip_member(tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(map(gzip.compress, [INFO, *(response(page(n)) for n in range(3))])))
    assert read_corpus(path).documents == [sentence(n) for n in range(3)]


def packed(numbers, damage=lambda number, member: member):
    pages = (response(page(n) * 20, url=f"http://a/{n}") for n in numbers)
    members = (gzip.compress(content, mtime=0) for content in pages)
    return [damage(number, member) for number, member in enumerate(members)]


def test_workers_share_a_file_of_gzip_members(tmp_path, monkeypatch):
    path = tmp_path / "a.warc.gz"
    members = packed(range(60), lambda number, member: member + b"\0" * (number % 3))
    members[30] = members[30][:60] + b"damage" + members[30][66:]
    path.write_bytes(b"".join(members))
    whole = read_corpus(path)
    assert len(whole.splits) == 1 and len(whole.documents) == 59
    cut = read_corpus(path, 3000)
    assert len(cut.splits) > 5
    assert (cut.documents, cut.rejects) == (whole.documents, whole.rejects)
    lines = [line for block in cut.blocks for line in block.document_lines.tolist()]
    assert lines == [n + 1 for n in range(60) if n != 30]
    path.write_bytes(gzip.compress(b"".join(map(gzip.decompress, packed(range(60))))))
    monkeypatch.setattr("pipeline.corpus.readers.splits._MOST_SKIPPED_BYTES", 10_000)
    assert len(read_corpus(path, 50).splits) == 1  # a long member is read by one worker


def test_workers_share_a_file_of_zstandard_frames(tmp_path, monkeypatch):
    path = tmp_path / "a.warc.zst"
    frames = [zstandard.compress(gzip.decompress(member)) for member in packed(range(60))]
    path.write_bytes((b"\0" * 3).join(frames))
    whole, cut = read_corpus(path), read_corpus(path, 3000)
    assert len(whole.splits) == 1 and len(cut.splits) > 5
    assert len(cut.documents) == 60 and cut.documents == whole.documents
    lines = [line for block in cut.blocks for line in block.document_lines.tolist()]
    assert lines == [*range(1, 61)]
    monkeypatch.setattr("pipeline.corpus.readers.splits._MOST_SKIPPED_BYTES", 10_000)
    one = tmp_path / "one.warc.zst"  # as `zstd one.warc` makes it
    one.write_bytes(zstandard.compress(b"".join(map(zstandard.decompress, frames))))
    assert len(read_corpus(one, 50).splits) == 1
    assert read_corpus(one, 50).documents == whole.documents
    path.write_bytes(b"".join([*frames[:30], frames[30][:-9], *frames[31:]]))
    for block_bytes in (1_000_000, 3000):
        with pytest.raises(InputError, match=r"a\.warc\.zst: cannot be read to its end"):
            read_corpus(path, block_bytes)


# Behind a header's first 3 bytes, 4 announces a field whose length the next bytes are.
@pytest.mark.parametrize("put", [b"\xff\xfe\xfd", b"", b"\x04\0\0"], ids=["other", "cut", "field"])
@pytest.mark.parametrize("place", [3, 40, -6], ids=["header", "data", "checksum"])
def test_damaged_gzip_members_are_rejects_with_their_offset(tmp_path, place, put):
    """The pages before and after are read; none is lost without a word."""
    path = tmp_path / "a.warc.gz"

    def damage(number, member):
        if number not in (0, 4, 5, 9):
            return member
        place_here = place % len(member)
        return member[:place_here] + put + member[place_here + 3 :]

    members = packed(range(10), damage)
    path.write_bytes(b"".join(members))
    found = read_corpus(path)
    assert found.documents == read_corpus(path, 500).documents
    sound = read_corpus_of(tmp_path, packed(n for n in range(10) if n not in (0, 4, 5, 9)))
    assert found.documents == sound
    told = " ".join(detail for _, reason, detail in found.rejects if reason == BROKEN_RECORD)
    for number in (0, 4, 9):
        offset = sum(map(len, members[:number]))
        assert f"gzip member at byte {offset:,} of the file" in told
    # Damage that swallows the beginning of the next member is one.
    assert len(found.documents) + len(found.rejects) in (9, 10)


def read_corpus_of(tmp_path, members):
    (tmp_path / "sound.warc.gz").write_bytes(b"".join(members))
    return read_corpus(tmp_path / "sound.warc.gz").documents


def test_a_damaged_long_member_loses_its_rest(tmp_path):
    """A record that was read in part is no page, also if all of it was there."""
    path = tmp_path / "a.warc.gz"
    noise = bytes(range(256)) * 8
    source = random.Random(0)
    body = b"".join(
        page(0) + bytes(source.choices(noise, k=2000)).hex().encode() for _ in range(60)
    )
    long = gzip.compress(response(body, url="http://long/"))
    for damaged in (long[:50_000], long[:-5] + b"xxxxx", long[:50_000] + b"x" + long[50_001:]):
        path.write_bytes(b"".join([*packed([1]), damaged, *packed([2])]))
        found = read_corpus(path)
        assert len(found.documents) == 2
        ((line, reason, detail),) = found.rejects
        assert (line, reason) == (2, BROKEN_RECORD)
        assert detail.startswith(f"gzip member at byte {len(packed([1])[0]):,} of the file (")


def test_texts_are_those_of_fastwarc_and_resiliparse(tmp_path):
    stream = io.BytesIO()
    for number in range(9):
        body = f"<title>T</title><nav><a href=x>Home</a></nav><h1>é{number}</h1>" + "<p>ü b\n" * 9
        new = warc.WarcRecord()
        new.init_headers(record_type=warc.WarcRecordType.response)
        new.set_bytes_content(f"{HTML}X: {number}\r\n\r\n{body}".encode())
        new.is_http = True
        new.write(stream)
    path = tmp_path / "a.warc"
    path.write_bytes(stream.getvalue())
    expected = [
        html2text.extract_plain_text(each.reader.read().decode(), main_content=True)
        for each in warc.ArchiveIterator(io.BytesIO(stream.getvalue()))
    ]
    assert list(raw_texts(path, 100).values()) == expected


def test_the_texts_of_wet_files_are_read_as_they_are(tmp_path):
    texts = ["A title\nOne <b>is</b> here. Two is.", "Drei ist da.\n", " ", ""]
    content = INFO + b"".join(
        record(text.encode(), "conversion", "text/plain; charset=utf-8") for text in texts
    )
    content += record(b"\xff", "conversion", "text/plain")
    found = check_reader(tmp_path, "a.warc.wet", content)
    assert found.documents == [["A title", "One <b>is</b> here.", "Two is."], ["Drei ist da."]]
    assert found.dropped == {"empty document": 2}
    assert found.reasons == [(6, "invalid UTF-8")]


def test_records_without_a_page_are_counted(tmp_path):
    content = b"".join(
        (
            response(page(0)),
            response(page(1), "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n"),
            response(b"", "HTTP/1.0 301 Moved\r\nLocation: x\r\n"),
            response(b"%PDF", "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n"),
            response(b"x", "HTTP/1.1 200 OK\r\n"),
            record(b"1.2.3.4", media="text/dns"),
            record(b"", "revisit", "application/http"),
            record(b"<p>rest", "continuation"),
            record(page(2), "resource", "text/html"),
            record(b"png", "resource", "image/png"),
            response(b"<p></p>"),
            response(page(3), "HTTP/1.1 200\r\ncontent-type: Application/XHTML+xml\r\n"),
        )
    )
    found = check_reader(tmp_path, "a.warc", content)
    assert found.documents == [sentence(n) for n in (0, 2, 3)]
    assert found.dropped == {NOT_OK: 2, NOT_HTML: 4, NO_CONTENT: 2, "empty document": 1}
    assert not found.rejects


def chunked(data):
    return b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (3, data[:3], len(data) - 3, data[3:])


def test_http_encodings_are_undone(tmp_path):
    import brotli

    bodies = [
        response(gzip.compress(page(0)), HTML + "Content-Encoding: gzip\r\n"),
        response(brotli.compress(page(1)), HTML + "Content-Encoding: br\r\n"),
        response(zlib.compress(page(2)), HTML + "Content-Encoding: deflate\r\n"),
        response(chunked(page(3)), HTML + "Transfer-Encoding: chunked\r\n"),
        response(
            chunked(gzip.compress(page(4))),
            HTML + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        ),
        response(page(5), HTML + "Content-Length: 3\r\n"),  # which the record overrules
        response("Ärger".encode("latin-1"), HTML.replace("utf-8", "ISO-8859-1")),
    ]
    found = check_reader(tmp_path, "a.warc", b"".join(bodies))
    assert found.documents == [*(sentence(n) for n in range(6)), ["Ärger"]]
    assert not found.rejects


@pytest.mark.parametrize(
    "header",
    [
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: br\r\n",
        "Content-Encoding: deflate\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n",
    ],
)
def test_bodies_that_were_stored_decoded_are_taken_as_they_are(tmp_path, header):
    content = response(page(0), HTML + header) + response(page(1))
    found = check_reader(tmp_path, "a.warc", content)
    assert found.documents == [sentence(0), sentence(1)]
    assert not found.rejects


def test_names_of_fields_may_be_in_any_case(tmp_path):
    def renamed(data, change):
        return re.sub(rb"(?m)^(WARC-[A-Za-z-]+|Content-[A-Za-z-]+):", change, data)

    content = response(page(0))
    content += renamed(response(page(1)), lambda name: name[0].lower())
    content += renamed(response(page(2)), lambda name: name[0].upper())
    found = check_reader(tmp_path, "a.warc", content)
    assert found.documents == [sentence(n) for n in range(3)]


def test_junk_between_records_harms_none(tmp_path):
    junk = b"garbage in here\n" * 5
    content = response(page(0)) + response(page(1)) + junk + response(page(2)) + junk
    found = check_reader(tmp_path, "a.warc", content)
    assert found.documents == [sentence(n) for n in range(3)]
    assert not found.rejects


def test_other_formats_that_are_sent_as_html_are_none(tmp_path):
    others = [
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        b'{"a": 1, "text": "An answer of a server."}',
        b'[{"a": "<b>"}]',
        b"body { color: red } .x { margin: 0 }",
        b'<?xml version="1.0"?>\n<rss><channel><title>News</title></channel></rss>',
        b"\x89PNG\r\n\x1a\n" + bytes(90),
        b"PK\x03\x04\x14" + bytes(90),
        b"GIF89a<b>",
        bytes(8) + b"ftypmp42<b>",
        b"{\\rtf1\\ansi The bridge was closed.}",
        b"BEGIN:VCALENDAR\nSUMMARY:The bridge was closed.\nEND:VCALENDAR",
        b"[1, 2, 3]",
        b"jQuery(document).ready(function($){ alert('x'); });",
        b"/* c */ !function(e,t){e.x=t}(window,1);",
    ]
    found = check_reader(tmp_path, "a.warc", b"".join(map(response, [*others, page(0)])))
    assert found.documents == [sentence(0)]
    assert found.dropped == {NOT_HTML: len(others)}


def test_broken_pages_are_rejects_with_their_record_and_address(tmp_path):
    content = b"".join(
        (
            response(page(0)),
            response(b"\x1f\x8bno", HTML + "Content-Encoding: gzip\r\n", url="http://b/"),
            response(b"7\r\nno", HTML + "Transfer-Encoding: chunked\r\n"),
            record(b"nonsense"),
            response(b"caf\xe9 au lait", url="http://c/"),
            response(page(2)),
        )
    )
    found = check_reader(tmp_path, "a.warc", content)
    assert found.documents == [sentence(n) for n in (0, 2)]
    assert found.reasons == [
        *((number, BROKEN_HTTP) for number in (2, 3, 4)),
        (5, BAD_ENCODING),
    ]
    assert found.rejects[0][2].endswith("; http://b/")
    assert found.rejects[-1][2] == "utf-8, at byte 4; http://c/"


def test_reading_goes_on_after_damaged_records(tmp_path):
    parts = [
        response(page(0)),
        response(b"<p>too short", length=30),
        response(page(1)),
        response(b"<p>too long", length=400),
        response(page(2)),
        response(page(3)).replace(b"Content-Length", b"Content-Size"),
        response(page(4)),
        b"WARC/1.0\r\nWARC-Type: response\r\n" + b"x: y\r\n" * 20_000,
        response(page(5)),
        response(page(6))[:-20],
    ]
    found = check_reader(tmp_path, "a.warc", b"".join(parts))
    assert found.documents == [sentence(n) for n in (0, 1, 2, 4, 5)]
    assert found.reasons == [(number, BROKEN_RECORD) for number in (2, 4, 6, 8, 10)]
    place = sum(map(len, parts[:3]))
    detail = f"not as long as its Content-Length, at byte {place:,} of the uncompressed file"
    assert found.rejects[1][2] == detail


def test_a_record_may_be_larger_than_any_document(tmp_path):
    video = record(b"WARC/1.0\n" * 1_000_000, "resource", "video/mp4")
    bomb = response(gzip.compress(b" " * 2_000_000), HTML + "Content-Encoding: gzip\r\n")
    content = b"".join([response(page(0)), video, response(page(1)), bomb, response(page(2))])
    (tmp_path / "a.warc").write_bytes(content)
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(content))
    for name in ("a.warc", "a.warc.gz"):
        for block_bytes in (50_000, 1 << 22):
            found = read_corpus(tmp_path / name, block_bytes, max_document_megabytes=1.0)
            assert found.documents == [sentence(n) for n in range(3)]
            assert found.reasons == [(2, TOO_LONG), (4, TOO_LONG)]


@fewer_examples(0.67)
@given(
    st.lists(st.tuples(st.integers(0, 2500), st.binary(max_size=40), st.integers(0, 300))),
    st.integers(1, 3000),
)
def test_no_damage_changes_what_cuts_give(tmp_path_factory, changes, block_bytes):
    """Records with spliced bytes: the same documents and rejects for any cut, none twice."""
    content = b"".join(response(page(n)) for n in range(8))
    for place, new, length in changes:
        content = content[:place] + new + content[place + length :]
    path = tmp_path_factory.mktemp("warc") / "a.warc"
    path.write_bytes(
        b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n" + content
    )
    whole, cut = read_corpus(path), read_corpus(path, block_bytes)
    assert (cut.documents, cut.rejects, cut.dropped) == (
        whole.documents,
        whole.rejects,
        whole.dropped,
    )
    assert len(whole.documents) + len(whole.rejects) + sum(whole.dropped.values()) <= 8 + len(
        changes
    )


def test_files_that_are_no_warc_or_cut_short_are_named(tmp_path):
    (tmp_path / "a.warc").write_bytes(page(0))
    with pytest.raises(UsageError, match=r"a\.warc: is not a WARC file"):
        read_corpus(tmp_path / "a.warc")
    (tmp_path / "b.warc.gz").write_bytes(response(page(0)))
    with pytest.raises(InputError, match=r"b\.warc\.gz: .*does not match its extension"):
        read_corpus(tmp_path / "b.warc.gz")
    (tmp_path / "c.warc.gz").write_bytes(gzip.compress(response(page(0)) * 99)[:-9])
    found = read_corpus(tmp_path / "c.warc.gz")
    assert len(found.documents) == 98
    ((_, _, detail),) = found.rejects
    assert detail == "gzip member at byte 0 of the file (the compressed data ends too early)"

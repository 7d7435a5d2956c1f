"""HTML files, and pages that are hostile to parsers: each is a document or a reject."""

import os
import signal

import pytest
from behavior.readers import check_reader, read_corpus

from bert_tf.base import errors
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections import VocabConfig
from pipeline.corpus.readers import html_pages
from pipeline.corpus.readers.html_pages import (
    BAD_ENCODING,
    BROKEN_PAGE,
    TOO_COSTLY,
    Extracted,
    extract_pages,
)

pytest.importorskip("resiliparse")
pytestmark = pytest.mark.slow  # starts processes

PROSE = "The river rises in the hills. It flows through three towns on its way to the sea. "
GOOD = (f"<p>{PROSE}</p>".encode(), "")


@pytest.fixture(autouse=True)
def own_processes(monkeypatch):
    idle = {}
    monkeypatch.setattr(html_pages, "_idle", idle)
    yield idle
    for extractors in idle.values():
        for extractor in extractors:
            extractor.close()


def test_a_file_is_a_document_without_menus_and_footers(tmp_path):
    page = (
        f"<html><head><title>Rivers</title><script>var a = '<p>';</script></head><body><nav><ul>"
        f"<li><a href='/'>Home</a></li></ul></nav><main><h1>A river</h1>\n<p>{PROSE}\n"
        "<p>Caf&eacute;s line its banks.</main><footer>Imprint</footer></body></html>"
    )
    found = check_reader(tmp_path, "a.html", page.encode())
    first, second = PROSE.strip().split(". ")
    sentences = ["A river", f"{first}.", second, "Cafés line its banks."]
    assert found.documents == [sentences]
    assert not found.rejects
    (tmp_path / "a.HTM").write_text(page)
    assert read_corpus(tmp_path / "a.HTM").documents == [sentences]


def test_a_page_without_text_is_an_empty_document_and_a_bad_one_a_reject(tmp_path):
    assert check_reader(tmp_path, "a.html", b"<p> </p>").dropped == {"empty document": 1}
    page = b"<meta charset=utf-8>\n<p>caf\xe9 au lait"
    found = check_reader(tmp_path, "b.html", page)
    assert found.rejects == [(1, BAD_ENCODING, "utf-8, at byte 28")]
    assert not found.documents


def test_a_missing_package_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "are_installed", lambda packages: packages != ["fastwarc"])
    (tmp_path / "a.html").write_text("x")
    with pytest.raises(UsageError, match=r"needs fastwarc, .*pip install 'bert-pipeline\[web\]'"):
        read_corpus(tmp_path / "a.html")
    for path, needs in (("*.warc.gz", True), ("a.HTM", True), ("a.html.txt", False)):
        assert VocabConfig(input=(path,), output="x").reads_web(path) == needs
    assert VocabConfig(input=("a",), output="x", format="warc").reads_web("a")


@pytest.mark.parametrize("extractor", ["resiliparse", "trafilatura"])
def test_hostile_pages_do_not_change_their_neighbors(extractor, monkeypatch):
    pytest.importorskip(extractor)
    monkeypatch.setattr(html_pages, "_CPU_SECONDS", 3)  # once, to load what a library uses
    (expected,) = extract_pages(extractor, [GOOD])
    nested = ["<div>", "<table><tr><td>", "<ul><li>", "<b><p>", "<svg>"]
    span = "<table><tr><td colspan=9007199254740991 rowspan=9007199254740991>a</td></tr></table>"
    pages = [
        *(f"{GOOD[0].decode()}{tag * 3_000}" for tag in nested),
        f"{GOOD[0].decode()}{span}",
        "\0<p>\0a\0",
        "<p " + "a=b " * 100_000 + ">x",
        "&#xD800; &#x110000; &" + "amp;" * 10_000,
        "<!--" * 10_000,
        "",
    ]
    batch = [each for page in pages for each in ((page.encode(), "utf-8"), GOOD)]
    found = extract_pages(extractor, batch)
    assert found[1::2] == [expected] * len(pages)
    assert {page.reason for page in found[::2]} <= {"", TOO_COSTLY, BROKEN_PAGE}
    assert found[2 * len(nested)].text.startswith(b"The river rises")


def test_a_page_that_takes_too_much_time_is_a_reject(monkeypatch):
    monkeypatch.setattr(html_pages, "_CPU_SECONDS", 1)
    found = extract_pages("resiliparse", [GOOD, (b"<div>" * 2_000_000, ""), GOOD])
    assert found[1] == Extracted(b"", TOO_COSTLY, "more than 1 s of CPU time")
    assert found[0] == found[2] != found[1]


def test_pages_that_take_too_much_memory_are_rejects(monkeypatch):
    monkeypatch.setattr(html_pages, "_MEMORY_MEGABYTES", 200)
    tree, text = (b"<p>a<b>b</b>" * 2_000_000, ""), (b"a" * 120_000_000, "")
    found = extract_pages("resiliparse", [GOOD, tree, GOOD, text, GOOD])
    assert found[1] == Extracted(
        b"", BROKEN_PAGE, "HTMLParserException"
    )  # how resiliparse calls it
    assert found[3] == Extracted(b"", TOO_COSTLY, "more than 200 MB of memory")
    assert found[0] == found[2] == found[4] != found[1]


def test_one_process_serves_many_batches_and_is_replaced(own_processes):
    expected = extract_pages("resiliparse", [GOOD] * 3)
    ((extractor,),) = own_processes.values()
    process = extractor._process
    assert extract_pages("resiliparse", [GOOD] * 3) == expected
    assert extractor._process is process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert extract_pages("resiliparse", [GOOD] * 3) == expected
    assert extractor._process is not process


def test_a_process_that_does_not_start_or_is_killed_is_no_fault_of_the_page(monkeypatch):
    with pytest.raises(InputError, match="was killed"):
        html_pages._fault(-signal.SIGKILL)
    monkeypatch.setattr(html_pages.html_process, "__file__", "/no/such/script")
    with pytest.raises(InputError, match="does not start .*exit status 2"):
        extract_pages("resiliparse", [GOOD])

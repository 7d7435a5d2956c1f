"""Dumps in, articles and rejects out: pages that are dropped, and damaged dumps."""

import bz2
import codecs
import gzip
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest
from behavior.readers import check_reader, read_corpus

from bert_tf.base.errors import InputError, UsageError

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="de">
  <siteinfo>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""
HEAD_LINES = HEAD.count("\n")
TAIL = "</mediawiki>\n"


def page(*texts, title="T", namespace="<ns>0</ns>", redirect="", model="wikitext"):
    revisions = "".join(
        f"    <revision>\n      <model>{model}</model>\n"
        f'      <text xml:space="preserve">{escape(text)}</text>\n    </revision>\n'
        for text in texts
    )
    head = f"  <page>\n    <title>{escape(title)}</title>\n    {namespace}\n    {redirect}\n"
    return f"{head}{revisions}  </page>\n"


PAGE_LINES = page("x").count("\n")


def read(path, block_bytes):
    found = read_corpus(path, block_bytes)
    return found.documents, found.rejects, found.dropped, len(found.splits)


def write_and_read(tmp_path, text, block_bytes=1 << 20, name="wiki.xml"):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(tmp_path / name, block_bytes)[:3]


def test_articles_are_read_and_other_pages_dropped_by_reason(tmp_path):
    pages = [
        page("'''One''' is a [[number]] & <b>more</b>. Two.\n\n[[Kategorie:Zahl]][[Datei:x|y]]"),
        page("x", redirect='<redirect title="Y" />'),
        page("#REDIRECT [[Y]]"),
        page("x", namespace="<ns>1</ns>"),
        page('{"a": 1}', model="json"),
        page("old", "new"),
        page(""),
        page("{{Infobox}}"),
        page("Ünï <page> 中"),
    ]
    found = check_reader(tmp_path, "wiki.xml", (HEAD + "".join(pages) + TAIL).encode())
    assert found.documents == [["One is a number & more.", "Two."], ["new"], ["Ünï <page> 中"]]
    assert found.rejects == []
    assert found.dropped == {
        "redirect": 2,
        "not in the main namespace": 1,
        "not wikitext": 1,
        "empty document": 2,
    }


def test_entities_of_a_dump_are_never_expanded(tmp_path):
    (tmp_path / "secret").write_text("secret")
    levels = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 12))
    declared = (
        f"<!DOCTYPE mediawiki [<!ENTITY e0 'lol'>{levels}"
        f"<!ENTITY file SYSTEM '{tmp_path}/secret'>]>"
    )
    bombs = [page("x").replace(">x<", f">{bomb}<") for bomb in ("&e11;", "&file;", declared)]
    text = declared + HEAD + page("before") + "".join(bombs) + page("after") + TAIL
    documents, rejects, _ = write_and_read(tmp_path, text.encode(), 1 << 20)
    assert documents == [["before"], ["after"]]
    assert [(reason, detail.partition(" at ")[0]) for _, reason, detail in rejects] == [
        ("broken XML", "undefined entity"),
        ("broken XML", "undefined entity"),
        ("broken XML", "not well-formed (invalid token)"),
    ]


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize(
    ("damaged", "lines", "reason", "detail"),
    [
        (page("x").replace("</title>", "</tite>"), 1, "broken XML", "mismatched tag at byte 15"),
        (page("x").replace(">x<", ">a < b<"), 6, "broken XML", "not well-formed (invalid token)"),
        (page("x").replace(">x<", ">&nbsp;<"), 6, "broken XML", "undefined entity"),
        (page("x").replace(">x<", ">\udcff<"), 6, "invalid UTF-8", "at byte 34"),
        (page("x").replace("  </page>\n", ""), None, "broken XML", ""),
        (page("x").replace("<ns>0</ns>", ""), 0, "broken page", "it has no <ns>"),
        (page(), 0, "broken page", "it has no <revision>"),
    ],
)
def test_a_damaged_page_is_rejected_and_the_rest_read(
    tmp_path, block_bytes, damaged, lines, reason, detail
):
    text = HEAD + page("before") + damaged + page("after") + TAIL
    documents, rejects, dropped = write_and_read(
        tmp_path, text.encode("utf-8", "surrogateescape"), block_bytes
    )
    assert documents == [["before"], ["after"]]
    ((line, found, log),) = rejects
    assert found == reason
    assert log.startswith(detail)
    if lines is not None:
        assert line == HEAD_LINES + PAGE_LINES + 1 + lines
    assert dropped == {}


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_text_outside_of_pages_is_reported_with_its_line(tmp_path, block_bytes):
    lost = page("lost").replace("<page>", "<pag>")
    text = HEAD + page("before") + lost + page("after") + page("cut")[:-30]
    documents, rejects, _ = write_and_read(tmp_path, text, block_bytes)
    assert documents == [["before"], ["after"]]
    assert [reject[:2] for reject in rejects] == [
        (HEAD_LINES + PAGE_LINES + 1, "broken XML"),
        (HEAD_LINES + 4 * PAGE_LINES - 2, "broken XML"),
    ]


def test_dumps_one_behind_the_other_are_read(tmp_path):
    text = 2 * ('<?xml version="1.0"?>\n' + HEAD + page("a") + TAIL)
    text = text.replace('<?xml version="1.0"?>\n', "")
    assert write_and_read(tmp_path, text)[:2] == ([["a"], ["a"]], [])


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("w.xml", bytes),
        ("w.xml.gz", gzip.compress),
        ("w.xml.bz2", bz2.compress),
        ("w.xml.bz2", lambda data: bz2.compress(data[:900], 1) + bz2.compress(data[900:])),
        ("w.xml.zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
        ("enwiki-20250101-pages-articles1.xml-p1p41242.bz2", bz2.compress),
        ("u.xml", lambda data: codecs.BOM_UTF16_LE + data.decode().encode("utf-16-le")),
        ("u.xml.bz2", lambda data: bz2.compress(data.decode().encode("utf-16"))),
    ],
)
def test_every_compression_reads_the_same(tmp_path, name, compress):
    texts = [f"Page {number} é" for number in range(40)]
    data = (HEAD + "".join(map(page, texts)) + TAIL).encode()
    (tmp_path / name).write_bytes(compress(data))
    documents, rejects, _, tasks = read(tmp_path / name, 1000)
    assert documents == [[text] for text in texts]
    assert rejects == []
    if name.endswith("bz2") and name[0] != "u":
        assert tasks == 1 or tasks > 5


def test_other_xml_is_refused(tmp_path):
    (tmp_path / "x.xml").write_text("<feed><doc/></feed>")
    with pytest.raises(UsageError, match=r"x.xml: is no MediaWiki dump \(it lacks <mediawiki>\)"):
        read(tmp_path / "x.xml", 10)


def test_a_damaged_bzip2_dump_is_reported(tmp_path):
    data = bz2.compress((HEAD + page("word " * 50_000) + TAIL).encode())
    (tmp_path / "x.xml.bz2").write_bytes(data[:-20])
    with pytest.raises(InputError, match="x.xml.bz2: cannot be read to its end"):
        read(tmp_path / "x.xml.bz2", 100)

"""The encoding of pages: byte-order mark, UTF-8, HTTP, <meta>, detection, in this order."""

import codecs

import pytest

from pipeline.corpus.readers.html_process import decode, load_extractor

pytest.importorskip("resiliparse")


@pytest.mark.parametrize(
    ("page", "charset", "text"),
    [
        (codecs.BOM_UTF8 + b"<meta charset=latin1>\xc3\xa9", "latin1", "<meta charset=latin1>é"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "", "é"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "utf-8", "é"),
        (b"\xe9", "latin1", "é"),
        (b"\x93a\x94", "iso-8859-1", "“a”"),  # which is Windows-1252 on the web
        (b"<meta charset='koi8-r'>\xc1", "", "<meta charset='koi8-r'>а"),
        (b"<meta charset='koi8-r'>\xe9", "latin1", "<meta charset='koi8-r'>é"),
        (
            b'<META http-equiv=Content-Type content="text/html; charset=Shift_JIS">\x83e',
            "",
            '<META http-equiv=Content-Type content="text/html; charset=Shift_JIS">テ',
        ),
        (b"<meta charset=utf-16>\xc3\xa9", "", "<meta charset=utf-16>é"),
        (b"<meta charset=nonsense>\xc3\xa9", "none", "<meta charset=nonsense>é"),
        ("<p>привет мир как дела".encode("cp1251"), "", "<p>привет мир как дела"),
        ("<p>naïve café".encode(), "", "<p>naïve café"),
        ("<p>naïve café".encode()[:-1], "utf-8", "<p>naïve caf"),  # cut off by the crawler
        (b"<meta charset=latin1>caf\xe9 x", "utf-8", "<meta charset=latin1>café x"),
        (b"", "", ""),
        ("<p>erzählte".encode(), "iso-8859-1", "<p>erzählte"),  # AddDefaultCharset
        ("<meta charset=latin1>Früh".encode(), "", "<meta charset=latin1>Früh"),
        (
            "<p>이장은 시장을 닫겠다고 말했다. 비가".encode("euc-kr"),
            "",
            "<p>이장은 시장을 닫겠다고 말했다. 비가",
        ),
        ("<p>Früh hörte".encode() * 6 + b"\xfc", "utf-8", "<p>Früh hörte" * 6 + "\ufffd"),
        ("<p>Früh hörte".encode() * 6 + b"\xfc.", "", "<p>Früh hörte" * 6 + "\ufffd."),
    ],
)
def test_pages_are_decoded_as_they_say(page, charset, text):
    assert decode(page, charset) == text


@pytest.mark.parametrize("charset", ["utf-8", "shift_jis"])
def test_a_page_in_no_encoding_that_it_names_raises(charset):
    with pytest.raises(UnicodeDecodeError) as raised:
        decode(b"caf\xe9 \xff x \xa0", charset)
    assert raised.value.encoding == charset


LONG = "It rained for {} days, and the old bridge over the river was closed."


@pytest.mark.parametrize("body", ["{}", "<main>{}</main>", "<div class=text><div>{}</div></div>"])
def test_lists_of_sentences_are_main_text(body):
    """The extractor takes any list close to <body> for navigation."""
    items = "".join(f"<li>{LONG.format(n)} <a href=x>More</a></li>" for n in (2, 3, 4))
    menu = "".join(f"<li><a href=x>Page {n} of the town.</a></li>" for n in (5, 6, 7))
    page = f"<p>{LONG.format(1)}</p><ul>{items}</ul><p>{LONG.format(8)}</p><ul>{menu}</ul>"
    text = load_extractor("resiliparse")(f"<html><body>{body.format(page)}</body></html>")
    places = [text.find(LONG.format(n)) for n in (1, 2, 3, 4, 8)]
    assert -1 not in places
    assert places == sorted(places)
    assert "Page 6" not in text


@pytest.mark.parametrize("html", ["", "<ul></ul>", "<p>a", "<ul><li>" * 200 + "It rained all day."])
def test_pages_without_text_are_extracted(html):
    assert isinstance(load_extractor("resiliparse")(html), str)

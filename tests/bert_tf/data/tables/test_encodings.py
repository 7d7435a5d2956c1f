"""Guesses of encodings, and of formats that are no text."""

import gzip
import io
import tarfile
import zipfile

import pytest

from bert_tf.data.tables.encodings import (
    file_kind,
    has_too_many_controls,
    likely_encoding,
    wide_encoding,
)

TEXTS = {
    "It’s a “quoted” word – really.\n": ["cp1252"],
    "Le vieux pont est fermé. Les élèves sont allés à la forêt où naît le fleuve.\n": [
        "cp1252", "latin-1", "mac-roman", "cp850",
    ],
    "Die Straße ist schön, aber müde Käfer fliegen über Öfen.\n": ["latin-1", "cp850"],
    "El año pasado el niño comió. ¿Cómo está usted? Mañana será así.\n": ["latin-1"],
    "A ação não é fácil; você já está à espera de pães.\n": ["cp1252"],
    "Rødgrød med fløde på en ø. Ærlig talt, nå ja.\n": ["cp1252"],
    "Zażółć gęślą jaźń. Proszę pana, to są źródła.\n": ["cp1250", "iso-8859-2"],
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Řekl, že už nepřijde.\n": ["cp1250"],
    "Árvíztűrő tükörfúrógép. Az öreg hídon ült és nézte a vizet.\n": ["cp1250"],
    "Yaşlı adam köprünün üstünde oturuyor, güneş ışığı.\n": ["cp1254"],
    "Старый мост закрыт. Фермер ждёт дождя уже три дня.\n": [
        "cp1251", "koi8-r", "cp866", "iso-8859-5",
    ],
    "Старий міст зачинено. Її брат фарбує паркан, а фермер чекає на дощ.\n": ["cp1251", "koi8-u"],
    "Η παλιά γέφυρα είναι κλειστή. Ο αγρότης περιμένει τη βροχή.\n": ["cp1253", "iso-8859-7"],
    "הגשר הישן סגור. האיכר מחכה לגשם.\n": ["cp1255", "iso-8859-8"],
    "الجسر القديم مغلق. المزارع ينتظر المطر منذ ثلاثة أيام.\n": ["cp1256"],
    "สะพานเก่าปิดแล้ว ชาวนารอฝนมาสามวัน\nน้องชายของเธอทาสีรั้ว\n": ["cp874"],
    "老人坐在桥上看水。\n夜里下了一场大雪。\n": ["gb18030"],
    "他说：“这是真的吗？”\n我们都在学习汉语，2023年。\n": ["gb18030"],
    "老人坐在橋上看水。\n夜裡下了一場大雪。\n": ["big5"],
    "春が来ました。\n木があります。\n": ["shift_jis", "euc-jp", "iso-2022-jp"],
    "①番目の問題は～です。\n": ["cp932"],
    "노인이 다리 위에 앉아 있다.\n밤에 눈이 왔다.\n": ["euc-kr", "iso-2022-kr"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "encoding"), [(text, name) for text, names in TEXTS.items() for name in names]
)
def test_a_line_or_two_name_their_encoding(text, encoding):
    lines = text.encode(encoding)
    guess = likely_encoding(lines)
    assert guess is not None
    assert lines.decode(guess) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["Hi", "The old bridge is closed.\nA farmer waits.\n", *TEXTS])
def test_the_order_of_wide_characters(text, encoding):
    assert wide_encoding(text.encode(encoding)) == encoding


@pytest.mark.parametrize(
    "data", [b"\x81\xff\x00", bytes(range(256)), b"\x93\xfa" * 3 + b"\xff", b"\xc0\x80 x\n"]
)
def test_nothing_is_guessed_of_other_bytes(data):
    assert likely_encoding(data) is None
    assert wide_encoding(data) is None


def zipped(name):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(name, "<x/>")
    return stream.getvalue()


def tarred():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("inside.txt"))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (gzip.compress(b"x", mtime=0), "gzip data"),
        (zipped("xl/workbook.xml"), "an Excel workbook"),
        (zipped("word/document.xml"), "a Word document"),
        (zipped("a.txt"), "a zip archive"),
        (tarred(), "a tar archive"),
        (b"%PDF-1.7\n", "a PDF document"),
    ],
)
def test_formats_that_are_no_text(data, kind):
    found = file_kind(data)
    assert found is not None
    assert found[0] == kind


@pytest.mark.parametrize("data", [b"", b"BZh is a name\n", b"PK is another\n", b"PAR1S\n"])
def test_text_is_of_no_other_format(data):
    assert file_kind(data) is None


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (b"a\fb\tc\r\n" * 9, False),
        (b"\x1b[31mred\x1b[0m\n", False),
        ("text".encode("utf-16-le"), True),
        (b"\x01\x02\x03text", True),
        (b"a stray \0 and \7", False),
        ("Hi".encode("utf-16-be"), True),
        (b"\0", True),
        (b"Hive's\x01field\x01ends\n" * 9, False),
        (b"N\bNA\bA  of a page of the manual", False),
        (b"", False),
    ],
)
def test_controls(sample, expected):
    assert has_too_many_controls(sample) is expected

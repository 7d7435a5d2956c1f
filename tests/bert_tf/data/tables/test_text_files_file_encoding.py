"""The guess of an encoding from the lines of a file."""

import gzip

import pytest

from bert_tf.base.errors import InputError
from bert_tf.data.tables.text_files import encoding_advice, file_encoding

GERMAN = "text,label\nschön,gut\nKälte,schlecht\n"
CHINESE = "老人坐在桥上看水。\n夜里下了一场大雪。\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain,ascii\n", "utf-8"),
        (GERMAN.encode(), "utf-8"),
        (GERMAN.encode("utf-8-sig"), "utf-8"),
        (GERMAN.encode("utf-16"), "utf-8"),  # readers see its mark
        (GERMAN.encode("utf-16-be"), "utf-16-be"),
        (CHINESE.encode("utf-16-le"), "utf-16-le"),
        ("春が来ました。\n川があります。\n".encode("utf-16-be"), "utf-16-be"),  # few NULs
        (GERMAN.encode("cp1252"), "cp1252"),
        ("“quoted”\n".encode("cp1252"), "cp1252"),
        (b"plain line\n" * 500_000 + GERMAN.encode("cp1252"), "cp1252"),
        (CHINESE.encode("gb18030"), "gb18030"),
        (b"a" + CHINESE.replace("\n", "").encode("gb18030") * 2000, "gb18030"),  # one long line
        ("春が来ました。\n".encode("iso-2022-jp"), "iso-2022-jp"),
        (b"\x81 is nothing in cp1252\n", None),
        (bytes(range(128, 256)) + b"\n", None),
        (GERMAN.encode() + b"one bad \xe4 byte\n", "utf-8"),  # a damaged row is rejected
    ],
)
def test_lines_decide(data, expected, tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(data))
    assert file_encoding(path) == expected


@pytest.mark.parametrize("data", [b"", b" \n\n"])
def test_an_empty_file_is_refused(data, tmp_path):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError, match=r"t\.csv: is empty"):
        file_encoding(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (GERMAN.encode("cp1252"), "the file looks like cp1252; give --encoding cp1252"),
        (GERMAN.encode() + b"bad \xe4\n", "the file is UTF-8 except for such lines; correct them"),
        (b"\x81\xff\n", "its encoding cannot be detected; give it with --encoding"),
        (None, "its encoding cannot be detected; give it with --encoding"),
    ],
)
def test_advice(data, advice, tmp_path):
    if data is not None:
        (tmp_path / "t.txt").write_bytes(data)
    assert encoding_advice(str(tmp_path / "t.txt")) == advice

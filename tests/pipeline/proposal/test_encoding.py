"""The guess of an encoding."""

import gzip

import pytest

from bert_tf.base.errors import InputError
from pipeline.proposal.encoding import likely_encoding

GERMAN = "text,label\nschön,gut\nKälte,schlecht\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain,ascii\n", "utf-8"),
        (GERMAN.encode(), "utf-8"),
        (GERMAN.encode("utf-8-sig"), "utf-8"),
        (GERMAN.encode("utf-16"), "utf-8"),  # readers see its mark
        (GERMAN.encode("cp1252"), "cp1252"),
        ("“quoted”\n".encode("cp1252"), "cp1252"),
        (b"\x81 is nothing in cp1252\n", "latin-1"),
        (GERMAN.encode() + b"one bad \xe4 byte\n", "utf-8"),  # a damaged row is rejected
    ],
)
def test_lines_decide(data, expected, tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(data))
    assert likely_encoding(path) == expected


@pytest.mark.parametrize("data", [b"", b" \n\n"])
def test_an_empty_file_is_refused(data, tmp_path):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError, match=r"t\.csv: is empty"):
        likely_encoding(tmp_path / "t.csv")

"""Text files of any encoding, compression and storage, with a byte-order mark or without."""

from __future__ import annotations

import gzip
import io
import re

import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.tables import read_table, read_table_blocks
from pipeline.beam.files import UncompressedFile


class FailingStream(io.RawIOBase):
    """Gives a few rows, then loses its connection."""

    def __init__(self, content: bytes):
        self._left = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        read = self._left.readinto(buffer)
        if not read:
            raise ConnectionError("connection reset\nby peer")
        return read


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("marked", [False, True])
def test_rows_of_any_encoding(tmp_path, name, encoding, marked):
    text = {
        "a.tsv": "id\ttext\n1\tcafé\n",
        "a.jsonl": '{"id": "1", "text": "café"}\n',
    }.get(name, "id,text\n1,café\n")
    mark = "\ufeff" if marked and encoding in ("utf-8", "utf-16-be") else ""
    content = (mark + text).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    block = next(read_table_blocks(tmp_path / name, dialect=TableDialect(encoding=encoding)))
    assert block.rows == [{"id": "1", "text": "café"}]


def test_bytes_that_an_encoding_lacks_are_rejected_by_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text\nfine\n\x81\n")
    table = read_table(path, dialect=TableDialect(encoding="cp1252"), text_columns=["text"])
    assert [reject.reason for reject in table.rejects] == ["invalid cp1252"]


def test_a_mark_of_another_encoding_is_believed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbftext\nfine\n")
    with pytest.raises(InputError, match="byte-order mark of UTF-8; leave --encoding latin-1 out"):
        read_table(path, dialect=TableDialect(encoding="latin-1"), text_columns=["text"])


def test_a_file_that_is_not_of_its_encoding_at_all(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text\nplain\n")
    with pytest.raises(InputError, match="cannot be read as utf-16"):
        read_table(path, dialect=TableDialect(encoding="utf-16"), text_columns=["text"])


def test_missing_file(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_table(tmp_path / "gone.csv", text_columns=["text"])


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.json", "x.jsonl"])
def test_storage_that_fails_is_reported_and_opened_by_its_name(name):
    asked = []

    def opener(path):
        asked.append(path)
        return FailingStream(b'{"text": "a"}\n' if ".json" in name else b"text\na\n")

    with pytest.raises(InputError) as failure:
        list(read_table_blocks(f"far://b/{name}", block_rows=1, opener=opener))
    assert str(failure.value) == (
        f"far://b/{name}: cannot be read to its end (connection reset); try again, or copy the file"
    )
    assert set(asked) == {f"far://b/{name}"}


TEXT = "id,text\n1,the old bridge is closed\n2,春\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-32-be"])
def test_marks_name_their_encoding(tmp_path, encoding):
    mark = "\ufeff" if encoding == "utf-32-be" else ""
    (tmp_path / "a.csv").write_bytes((mark + TEXT).encode(encoding))
    block = next(read_table_blocks(tmp_path / "a.csv"))
    assert block.rows[-1] == {"id": "2", "text": "春"}


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        (TEXT.encode("utf-16-le"), "utf-8", "is UTF-16 without a .*; give --encoding utf-16-le$"),
        (TEXT.encode("utf-16-be"), "latin-1", "is UTF-16 without .*; give --encoding utf-16-be$"),
        # Chinese has a NUL for each line end only.
        (
            ("老人坐在桥上，看水。" * 30 + "\n").encode("utf-16-le"),
            "utf-8",
            "give --encoding utf-16-le$",
        ),
        (TEXT.encode("utf-32-le"), "utf-8", "is UTF-32 without a .*; give --encoding utf-32-le$"),
        (
            TEXT.encode("utf-32"),
            "utf-16",
            "is UTF-32; give --encoding utf-32, or convert it: iconv",
        ),
        (
            TEXT.encode("iso-2022-jp"),
            "utf-8",
            "is ISO-2022-JP, not UTF-8; give --encoding iso-2022",
        ),
        (
            gzip.compress(TEXT.encode(), mtime=0),
            "utf-8",
            r"is gzip data, not text; rename it to a\.csv\.gz$",
        ),
        (b"%PDF-1.7 \x01", "cp1252", r"is a PDF document, not text; .* pdftotext a\.csv$"),
        (bytes(range(20)) * 9, "utf-8", "is not text, 135 of its first 180 bytes are NUL or"),
    ],
)
@pytest.mark.parametrize("packs", [False, True])
def test_what_is_no_text_of_its_encoding_is_named(tmp_path, content, given, message, packs):
    path = tmp_path / ("a.csv.gz" if packs else "a.csv")
    path.write_bytes(gzip.compress(content) if packs else content)
    with pytest.raises(InputError, match=message.replace(r"a\.csv", re.escape(path.name))):
        read_table(path, dialect=TableDialect(encoding=given), text_columns=["text"])


def test_iso_2022_is_read_where_it_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes(TEXT.encode("iso-2022-jp"))
    block = next(read_table_blocks(tmp_path / "a.csv", dialect=TableDialect(encoding="iso2022_jp")))
    assert block.rows[-1] == {"id": "2", "text": "春"}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_text_that_goes_on_in_another_encoding_is_refused(tmp_path, name):
    content = b"text\n" + b"a row\n" * 50_000 + "a row of another program\n".encode("utf-16-le")
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(InputError, match="begins as UTF-8 and continues with NUL characters"):
        read_table(tmp_path / name, text_columns=["text"])
    with (
        pytest.raises(InputError, match="begins as UTF-8 and continues"),
        UncompressedFile(str(tmp_path / name)) as file,
    ):
        file.read(1_000_000)


@pytest.mark.parametrize("nul", [b"\0", b"\0" * 5_000])
def test_stray_nuls_and_a_hole_of_them_are_no_other_encoding(tmp_path, nul):
    (tmp_path / "a.csv").write_bytes(b"text\n" + b"a row\n" * 50_000 + b"a " + nul + b" row\n")
    assert len(read_table(tmp_path / "a.csv", text_columns=["text"])) == 50_001

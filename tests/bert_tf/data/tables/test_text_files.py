"""Text files of any encoding, compression and storage, with a byte-order mark or without."""

from __future__ import annotations

import gzip
import io

import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.tables import read_table, read_table_blocks


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

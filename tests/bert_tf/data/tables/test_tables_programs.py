"""Tables as programs write them: row names, separators at line ends, late quotes, no ending."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.tables import read_table, read_table_blocks, table_format


def read_all(folder: Path, name: str, content: bytes, **needed):
    path = folder / name
    path.write_bytes(content)
    return next(read_table_blocks(path, **needed))


LONG_TSV = [
    (f"the lamp number {number} was warm and so on and on and on", "ab") for number in range(24_000)
]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize(
    "quoted", ['the lamp was "so" warm', "one\tlamp", "one\nlamp", "so\r\nwarm"]
)
def test_quotes_that_come_late_are_quotes(tmp_path, name, quoted):
    """Pandas quotes by need: the first quote comes after the sampled rows."""
    rows = list(LONG_TSV)
    rows[21_000] = (quoted, "x")
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t", lineterminator="\n").writerows([("text", "label"), *rows])
    content = stream.getvalue().encode()
    assert len(content) > 1 << 20 and b'"' not in content[: 1 << 20]
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    shown = io.StringIO()
    needed = {"text_columns": ["text"], "value_columns": ["label"]}
    table = read_table(tmp_path / name, console=Console(shown), **needed)
    assert list(zip(table.columns["text"], table.columns["label"], strict=True)) == rows
    assert not table.rejects
    assert "later cells are quoted, so it is read like CSV" in shown.getvalue()


@pytest.mark.parametrize(
    "plain", ['" so it goes', '" so " it goes', '"so" it goes', '"so it goes"']
)
def test_late_marks_of_speech_are_none(tmp_path, plain):
    rows = list(LONG_TSV)
    rows[21_000] = (plain, "x")
    lines = ["text\tlabel", *map("\t".join, rows)]
    (tmp_path / "a.tsv").write_text("".join(line + "\n" for line in lines))
    table = read_table(tmp_path / "a.tsv", text_columns=["text"])
    assert table.columns["text"] == [text for text, _ in rows]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv", '"text","label"\n"1","a, b","x"\n"2","c","y"\n"3","d",""\n'),
        ("r.tsv", "text\tlabel\n1\ta, b\tx\n2\tc\ty\n3\td\tz\n"),
        ("r.csv", '"text";"label"\n"first";"a, b";"x"\n"second";"c";"y"\n"third";"d";"z"\n'),
        ("r.csv", '"id","text"\n"1",7,"a, b"\n"2",8,"c"\n"3",9,"d"\n'),
    ],
    ids=["numbers", "tabs", "names", "ids"],
)
def test_names_of_rows_that_r_writes_are_no_cells(name, content, tmp_path):
    block = read_all(tmp_path, name, content.encode(), text_columns=["text"])
    assert block.texts("text") == ["a, b", "c", "d"]
    assert block.header.raw == content.split("\n")[0]


@pytest.mark.parametrize(
    "content",
    [
        b"text,label\nHello, you,x\nDear, me,y\n",
        b"id,text\n1,Hello, you\n2,Dear, me\n3,So, here\n",
        b"n,text\n1,Hello, you\n2,Dear, me\n3,So, here\n",
        b"Row_ID,text\n1,a,b\n2,c,d\n3,e,f\n",
        b'"id","text"\n"1","a","b"\n"2","c","d"\n"3","e","f"\n',
        b'text,label\n1,"a",x\n2,"b",y\n3,"c",z\n',
        b"text,label\n1,a,x\n2,b,y\n",
    ],
    ids=["texts", "ids", "blanks", "capitals", "quotes", "some quotes", "few"],
)
def test_a_comma_too_many_in_every_row_is_no_name(content, tmp_path):
    with pytest.raises(InputError, match="3 where the header has 2"):
        read_table(_written(tmp_path / "a.csv", content), text_columns=["text"])


@pytest.mark.parametrize(
    "content",
    [
        b'"text","label"\n"hello there","pos",\n"bye now","neg",\n',
        b"text,label\n1,hello,\n2,bye,\n3,so,\n",
        b"text,label\n1,hello,\n2,bye,\n3,so, it is\n",
        b'text,label\n"1","hello",""\n"2","bye",""\n',
        b"text,label\ncaf\xe9,x,\nbye,y,\n",
        b'"text","label"\n"caf\xe9","x",\n"bye","y",\n',
    ],
)
def test_separators_at_the_ends_of_lines_shift_no_column(content, tmp_path):
    block = read_all(tmp_path, "a.csv", content, text_columns=["text"])
    assert block.header.columns == ("text", "label")


def test_columns_that_blanks_separate_are_told(tmp_path):
    path = _written(tmp_path / "a.csv", b'"text" "label"\n"1" "a" "x"\n')
    with pytest.raises(
        InputError, match=r"a\.csv:1: blanks separate the columns, as R's .*sep = ','"
    ):
        read_table(path, text_columns=["text"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"text": "a"}\n', "it looks like JSON lines: end its name in .jsonl"),
        (b"a\tb\nc\td\ne\tf\n", "it looks like a table: end its name in .tsv"),
        (b"PK\x03\x04rest", "it is a ZIP archive: unzip it and give the files in it"),
        (gzip.compress(b"a,b\n"), "it is compressed by gzip: end its name in .jsonl.gz"),
        (b"PAR1rest", "it is Parquet: end its name in .parquet"),
        (b"id,My text\n1,a\n2,b\n", "it looks like a table: end its name in .csv"),
        (b"id,My text\n" + b"1,some words\n" * 9_999, "it looks like a table: end its name in"),
        (b"some words\n", "the name must end in .csv"),
        (b"Once, a king.\nHe had, say, a daughter.\nHe was, too.\n", "the name must end in .csv"),
        (b"Yes, sir\nNo, madam\nOh, sir\n", "the name must end in .csv"),
        (b"words, " * 9_999, "the name must end in .csv"),
    ],
    ids=[
        *("json", "tabs", "zip", "gzip", "parquet", "commas", "many rows"),
        *("text", "prose", "speech", "one line"),
    ],
)
def test_a_file_without_a_known_ending_is_looked_at(content, expected, tmp_path):
    path = _written(tmp_path / "part-00000", content)
    with pytest.raises(UsageError) as caught:
        table_format(path)
    assert str(caught.value).startswith(f"{path}: format unknown") and expected in str(caught.value)


def _written(path, content):
    path.write_bytes(content)
    return path

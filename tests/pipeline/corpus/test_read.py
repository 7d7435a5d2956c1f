"""Bytes in, documents and rejects out: every format, layout, compression and kind of damage."""

import bz2
import codecs
import dataclasses
import gzip
import json

import pyarrow as pa
import pytest
from behavior.readers import WHOLE, check_reader, read_corpus
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.corpus.read import ReadTask, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader


def config_for(**values):
    return build_section(VocabConfig, {"input": ("x",), "output": "y", **values})


@dataclasses.dataclass
class Case:
    name: str
    data: bytes
    documents: list
    rejects: list = dataclasses.field(default_factory=list)
    dropped: dict = dataclasses.field(default_factory=dict)
    values: dict = dataclasses.field(default_factory=dict)
    rows: int | None = None


SENTENCES = {"text_layout": "sentences"}
TEXT = [
    Case("two.txt", b"a b\nc\n\nd\n", [["a b", "c"], ["d"]]),
    Case("without-last-feed.txt", b"a\n\nb", [["a"], ["b"]], values=SENTENCES),
    Case("crlf-and-mark.txt", b"\xef\xbb\xbfa\r\nb\r\n\r\nc\r\n", [["a", "b"], ["c"]]),
    Case(
        "blank-lines-of-spaces.txt",
        b"\n\n a\t b \n \t\n\n\nc\n\n",
        [["a b"], ["c"]],
        values=SENTENCES,
    ),
    Case(
        "no-split.txt",
        b"One. Two.\n\nThree.",
        [["One. Two."], ["Three."]],
        values=SENTENCES,
    ),
    Case(
        "bad-utf8.txt",
        b"good\nbad \xff\n\n\xed\xa0\x80 surrogate\nlast \xe2\x82\n\nz\n",
        [["good"], ["z"]],
        [(2, "invalid UTF-8"), (4, "invalid UTF-8"), (5, "invalid UTF-8")],
    ),
    Case("one.txt", b"A title\nOne. Two\nlines.\n", [["A title", "One.", "Two", "lines."]]),
    Case("one-bad.txt", b"One.\n\xff\nTwo.", [["One.", "Two."]], [(2, "invalid UTF-8")]),
    Case(
        "lines.txt",
        b"One. Two.\n\nThree.\n\xff\n",
        [["One.", "Two."], ["Three."]],
        [(4, "invalid UTF-8")],
        {"empty document": 1},
        {"text_layout": "lines"},
    ),
    Case(
        "paragraphs.txt",
        b"\n\nOne\r\nparagraph. Two\r\n sentences.\r\n\r\n \t\r\n"
        b"A second\nbad \xff\n\n- third\n- as well",
        [["One paragraph.", "Two sentences.", "- third", "- as well"]],
        [(8, "invalid UTF-8")],
        values={"text_layout": "paragraphs"},
    ),
    Case("no-paragraphs.txt", b" \n", [], [], {"empty document": 1}, {"text_layout": "paragraphs"}),
    Case(
        "utf-16.txt",
        codecs.BOM_UTF16_BE + "é b\n\n中\n".encode("utf-16-be"),
        [["é b"], ["中"]],
        values=SENTENCES,
    ),
    Case(
        "bad-utf-16.txt",
        codecs.BOM_UTF16_LE + "a\n\nb".encode("utf-16-le") + b"\n\0\0\xd8\n\0c\0\n\0d",
        [["a"], ["b", "c"]],
        [(4, "invalid UTF-8"), (6, "invalid UTF-8")],
        values=SENTENCES,
    ),
    Case(
        "bad-latin.txt",
        "café\n\n".encode("cp1252") + b"\x81 is nothing\n\nb\n",
        [["café"], ["b"]],
        [(3, "invalid cp1252")],
        values={"encoding": "cp1252", **SENTENCES},
    ),
    Case("latin-file.txt", b"caf\xe9\n", [["café"]], values={"encoding": "latin-1"}),
    Case("empty.txt", b"", []),
    Case("blank.txt", b" \n\n", [], dropped={"empty document": 1}),
    Case("named.log", b"x\n\ny", [["x"], ["y"]], values={"format": "text", **SENTENCES}),
    Case(
        "nfc.txt",
        "e\u0301 n\u0303\n\n\u1e9b\u0323".encode(),
        [["é ñ"], ["\u1e9b\u0323"]],
        values=SENTENCES,
    ),
    Case("controls.txt", b"a\x00b\x07 \xc2\x85c\xe2\x80\x8bd\n", [["a b c\u200bd"]]),
]
JSONL = [
    Case(
        "plain.jsonl", b'{"text": "One. Two."}\n{"text": "b"}\n', [["One.", "Two."], ["b"]], rows=2
    ),
    Case("mark.ndjson", b'\xef\xbb\xbf{"text": "a\\nb"}', [["a", "b"]], rows=1),
    Case(
        "damaged.jsonl",
        b'{"text": "fine"}\n{"text": \n\n{"id": 3}\n[1]\n{"text": null}\n{"text": 17}\n'
        b'{"text": "\\ud800 x"}\n{"text": "\xff"}\n{"text": " "}\n{"text": "fine too"}\n',
        [["fine"], ["fine too"]],
        [
            (2, "not JSON"),
            (4, "column 'text' is missing"),
            (5, "not a JSON object"),
            (6, "column 'text' is empty"),
            (7, "column 'text' is not text"),
            (8, "lone surrogate"),
            (9, "invalid UTF-8"),
        ],
        {"blank line": 1, "empty document": 1},
        rows=11,
    ),
    Case(
        "double.jsonl",
        b'{"text": "a", "text": "b"}\n\xe3\x80\x80\n{"text": "c"}\n',
        [["c"]],
        [(1, "duplicate key"), (2, "not JSON")],
        rows=3,
    ),
    Case("key.jsonl", b'{"body": "x"}', [["x"]], values={"text_column": "body"}, rows=1),
]
TABLES = [
    Case("plain.csv", b"id,text\n1,a\n2,b\n", [["a"], ["b"]], rows=2),
    Case(
        "quoted.csv",
        b'\xef\xbb\xbfid,text\r\n1,"two\r\nlines, ""quoted"""\r\n2,x"y\r\n',
        [["two", 'lines, "quoted"'], ['x"y']],
        rows=2,
    ),
    Case(
        "ragged.csv",
        b'id,text,label\n1,fine,a\n2,too,many,fields\n3\n4,"unclosed,b\n5,next,a\n\n6,"q"x,a\n7,,b\n',
        [["fine"], ["next"]],
        [
            (3, "too many cells"),
            (4, "too few cells"),
            (5, "quote is not closed"),
            (8, "text after a closing quote"),
        ],
        {"blank line": 1, "empty document": 1},
        rows=8,
    ),
    Case(
        "an-early-quote.csv",
        b'id,text\n1,"oops\n2,"good"\n3,fine\n',
        [["good"], ["fine"]],
        [(2, "quote is not closed")],
        rows=3,
    ),
    Case("open.csv", b'id,text\n1,"oops\n2,b\n', [["b"]], [(2, "quote is not closed")], rows=2),
    Case("bad.csv", b"id,text\n1,\xff\n2,b\n", [["b"]], [(2, "invalid UTF-8")], rows=2),
    Case("semicolons.csv", b"id;text\n1;a, b\n", [["a, b"]], rows=1),
    Case("tabs.csv", b'id\ttext\n1\t"a\tb"\n', [["a b"]], rows=1),
    Case("returns.csv", b'id,text\r1,"a\rb"\r2\r3,c', [["a", "b"], ["c"]], [(4, "too few cells")]),
    Case("header.csv", b"id,text\n", [], rows=0),
    Case(
        "excel.csv",
        b"sep=;\r\nid;text;;\r\n1;a, b;;\r\n;;;\r\nid;text;;\r\n2;c\r\n3;d;e;\r\n4;f;;;g\r\n",
        [["a, b"], ["c"], ["d"]],
        [(5, "repeats the header"), (8, "too many cells")],
        {"blank line": 1},
        rows=6,
    ),
    Case("bars.csv", b"id|text\n1|a, b\n", [["a, b"]], rows=1),
    Case(
        "quoted.tsv",
        b'id\ttext\n1\t"a ""b"""\n2\t"c\td"\n',
        [['a "b"'], ["c d"]],
        rows=2,
    ),
    Case(
        "plain.tsv",
        b'id\ttext\n1\t"a, b\n2\tc\td\n',
        [['"a, b']],
        [(3, "too many cells")],
        rows=2,
    ),
]


@pytest.mark.parametrize("case", TEXT + JSONL + TABLES, ids=lambda case: case.name)
def test_each_file_gives_its_documents(case, tmp_path):
    found = check_reader(tmp_path, case.name, case.data, **case.values)
    assert found.documents == case.documents
    assert found.reasons == case.rejects
    assert found.dropped == case.dropped
    if case.rows is not None:
        assert len(found.documents) + len(found.rejects) + sum(found.dropped.values()) == case.rows


@pytest.mark.parametrize(
    ("last", "documents"),
    [
        (b'1\t"a ""b"""\n2\t"c\td\ne"\n', [['a "b"'], ["c d", "e"]]),
        (b'1\t"a" is b\n2\tc\n', [['"a" is b'], ["c"]]),
    ],
)
def test_the_first_quotes_of_a_tsv_may_come_late(last, documents, tmp_path, monkeypatch):
    monkeypatch.setattr("bert_tf.data.tables.formats.record_stream._CHUNK_BYTES", 64)
    early = b"".join(b"0\tthe lamp was warm\n" for _ in range(9))
    found = check_reader(tmp_path, "late.tsv", b"id\ttext\n" + early + last)
    assert found.documents == [["the lamp was warm"]] * 9 + documents and not found.rejects


def test_a_worker_in_another_folder_reads_the_same(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "document"}\nbroken\n')
    monkeypatch.chdir(tmp_path)
    task = ReadTask("x.jsonl", make_reader("x.jsonl", config_for()))
    assert task.location == "x.jsonl"
    monkeypatch.chdir(tmp_path / "elsewhere")
    (planned,) = plan_reading(task, 1 << 20)
    (block,) = read_blocks(planned, 1 << 20)
    assert block.source == block.evidence.rejects[0].source == "x.jsonl"
    assert dataclasses.replace(task, path="gs://bucket/x.jsonl").location == "gs://bucket/x.jsonl"


def splits_of(path, block_bytes, **values):
    task = ReadTask(str(path), make_reader(str(path), config_for(**values)))
    return [task.split for task in plan_reading(task, block_bytes)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.txt", b"sentence\nanother\n\n" * 60),
        ("x.jsonl", b'{"text": "document"}\n' * 100),
        ("x.tsv", b"text\n" + b"document\n" * 100),
        ("x.csv", b"text\n" + b'"with, a\nline end"\n' * 100),
    ],
)
@pytest.mark.parametrize(("suffix", "compress"), [("", bytes), (".bz2", bz2.compress)])
def test_large_files_are_split_where_documents_begin(name, data, suffix, compress, tmp_path):
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(compress(data))
    splits = splits_of(path, 40)
    assert len(splits) > 10
    offset = 0
    for split in splits:
        assert (split.offset, split.first_line) == (offset, 1 + data.count(b"\n", 0, offset))
        offset += split.length
    assert offset == len(data)


@pytest.mark.parametrize(
    ("name", "encode", "block_bytes"),
    [
        ("x.txt.gz", gzip.compress, 10),
        ("x.txt.zst", lambda data: pa.compress(data, "zstd", asbytes=True), 10),
        ("small.txt.bz2", bz2.compress, 1000),
        ("wide.txt", lambda data: data.decode().encode("utf-16"), 10),
    ],
)
def test_other_files_are_one_split(name, encode, block_bytes, tmp_path):
    (tmp_path / name).write_bytes(encode(b"a\nb\n\n" * 50))
    (split,) = splits_of(tmp_path / name, block_bytes)
    assert split.length < 0
    assert len(read_corpus(tmp_path / name, 10).blocks) > 5


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
        (".GZ", lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:])),
    ],
)
def test_compressed_files_read_as_the_plain_ones(suffix, compress, tmp_path):
    data = b"".join(b"%d a\n%d b\n\n" % (n, n) for n in range(100))
    (tmp_path / "plain.txt").write_bytes(data)
    compressed = tmp_path / f"same.txt{suffix}"
    compressed.write_bytes(compress(data))
    plain = read_corpus(tmp_path / "plain.txt", 64)
    assert len(plain.blocks) > 5
    assert read_corpus(compressed, 64).documents == plain.documents


@pytest.mark.parametrize("name", ["cut.txt.gz", "nonsense.csv.bz2", "cut.jsonl.zst"])
def test_damaged_compressed_files_are_reported(name, tmp_path):
    kind = name.rpartition(".")[2]
    compress = {"gz": gzip.compress, "bz2": bz2.compress}.get(
        kind, lambda data: pa.compress(data, "zstd", asbytes=True)
    )
    data = compress(b"some words\n" * 1000)
    (tmp_path / name).write_bytes(data[: len(data) // 2] if "cut" in name else b"nonsense" * 9)
    with pytest.raises(
        InputError, match="(cannot be read to its end|compression is damaged) .* again"
    ):
        read_corpus(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "data", "error", "message"),
    [
        ("x.csv", b"a,b\n", UsageError, "no column 'text'; it has 'a', 'b'; specify the column"),
        ("x.csv", b"text,text\n", InputError, "x.csv:1: column 'text' appears twice"),
        ("x.csv", b"text\xff\n", InputError, "header is invalid UTF-8; .*--encoding cp1252"),
        ("x.csv", b"", InputError, "is empty; expected a line with the names of the columns"),
        ("x.csv", b'"text\n', InputError, "the header is not a CSV row .*correct its quotes"),
        ("x.jsonl", b'{"a": 1}\n{"b": 2}', UsageError, "no column 'text'; it has 'a', 'b'"),
        ("x.json", b'\n{\n"data": []}', InputError, "one JSON value over many lines"),
        ("x.docx", b"", UsageError, r"does not say the format; known endings are \.txt"),
        ("x.gz", b"", UsageError, "does not say the format"),
    ],
)
def test_files_that_cannot_have_documents_are_refused(name, data, error, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(error, match=message):
        make_reader(str(tmp_path / name), config_for())


FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(FIELD, FIELD), max_size=8), st.integers(1, 40), st.booleans())
def test_csv_of_any_content_and_any_cut_gives_its_rows(tmp_path_factory, rows, cut, always_quote):
    """Our reader reads the output of Python's `csv`."""
    import csv
    import io

    stream = io.StringIO()
    quoting = csv.QUOTE_ALL if always_quote else csv.QUOTE_MINIMAL
    csv.writer(stream, quoting=quoting).writerows([("id", "text"), *rows])
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(stream.getvalue().encode())
    found = read_corpus(path, cut)
    documents = ["".join("".join(document).split()) for document in found.documents]
    expected = [squeeze(text) for _, text in rows]
    assert [squeeze(text) for text in documents] == [text for text in expected if text]
    assert found.dropped.get("empty document", 0) == expected.count("")
    assert not found.rejects


@given(st.text('a",\n\r', max_size=40), st.integers(1, 40))
@example('1,"x\n2,b\n3,"y"\n4,d\n', 13)
def test_cuts_do_not_change_what_is_made_of_broken_rows(tmp_path_factory, rows, cut):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(b"id,text\n" + rows.encode())
    whole, cut_up = (read_corpus(path, size) for size in (WHOLE, cut))
    assert cut_up.documents == whole.documents
    assert cut_up.rejects == whole.rejects
    assert cut_up.dropped == whole.dropped


def squeeze(text):
    import unicodedata

    kept = (c for c in text if unicodedata.category(c) != "Cc" and c != "\ufeff")
    return unicodedata.normalize("NFD", "".join("".join(kept).split()))


@given(st.lists(st.sampled_from(["a", "bb. C", "", " ", "\xff"]), max_size=12), st.integers(1, 30))
def test_cuts_do_not_change_the_documents(tmp_path_factory, lines, cut):
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    whole, cut_up = (read_corpus(path, size, text_layout="sentences") for size in (WHOLE, cut))
    assert cut_up.documents == whole.documents
    assert cut_up.rejects == whole.rejects


def test_a_document_may_be_larger_than_a_block(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"text": "word " * 5000}) + "\n" + json.dumps({"text": "b"}))
    assert [len(document[0]) for document in read_corpus(path, 100).documents] == [
        24999,
        1,
    ]

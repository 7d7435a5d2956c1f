"""Corpora that ask for all memory or hours: bounded, and reported in one line."""

import gzip
import time
import tracemalloc

import pytest

from bert_tf.base.errors import BertPipelineError, InputError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.corpus.documents import DocumentRules
from pipeline.corpus.read import ReadTask, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader
from pipeline.corpus.readers.mediawiki import MediaWikiReader
from pipeline.corpus.readers.text import TextReader


def blocks(path, **values):
    config = build_section(VocabConfig, {"input": [str(path)], "output": "vocab.txt", **values})
    task = ReadTask(
        str(path), make_reader(str(path), config), rules=DocumentRules.from_config(config)
    )
    return [block for part in plan_reading(task, 1 << 20) for block in read_blocks(part, 1 << 20)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.txt.gz", b"x"),
        ("a.jsonl.gz", b'{"text": "'),
        ("a.csv.gz", b'text\n"'),
        ("a.tsv.gz", b"text\n"),
    ],
)
def test_a_document_without_end_takes_bounded_memory(tmp_path, name, start):
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as stream:
        stream.write(start)
        for _ in range(64):
            stream.write(b"x" * (1 << 20))

    def read():
        with pytest.raises(InputError, match="more than 4 MB begins here.*max_document_megabytes"):
            blocks(tmp_path / name, max_document_megabytes=4)

    read()  # compiles the kernels, whose memory is not the reader's
    tracemalloc.start()
    try:
        read()
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        (b"\n" * 3_000_000, "file"),
        (b"x" + b"\n" * 3_000_000 + b"y", "sentences"),
        (b"x" + b" " * 5_000_000 + b"\n" + b" " * 5_000_000 + b"y", "file"),
        (b"x" + b" " * 5_000_000 + b"\n" + b" " * 5_000_000 + b"\ny", "sentences"),
        pytest.param(b"x\n" * 2_500_000, "file", marks=pytest.mark.slow),
        pytest.param(b"x\n" * 2_500_000 + b"\n" + b"x\ny\n", "sentences", marks=pytest.mark.slow),
    ],
)
def test_white_space_is_looked_at_once_to_find_the_layout(tmp_path, content, layout):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    began = time.process_time()
    assert TextReader("auto").resolved(str(path)).layout == layout
    assert time.process_time() - began < 5


def test_namespaces_are_found_in_time_in_proportion_to_the_head(tmp_path):
    path = tmp_path / "a.xml"
    path.write_bytes(b"<mediawiki>" + b'<namespace key="6"' * 50_000)
    began = time.process_time()
    MediaWikiReader.for_file(str(path), VocabConfig(input=(str(path),), output="vocab.txt"))
    assert time.process_time() - began < 5


def test_a_line_of_json_beyond_the_limit_is_rejected(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "' + "x" * 1000 + '"}\n{"text": "ok"}\n')
    (block,) = blocks(path, max_row_characters=1000)
    assert block.sentences.to_pylist() == ["ok"]
    assert [reject.reason for reject in block.evidence.rejects] == ["row is too long"]


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl.gz", "a.parquet", "a.xml.bz2"])
def test_a_git_lfs_pointer_is_reported_as_what_it_is(tmp_path, name):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(
        BertPipelineError, match=f"{name}: is a Git LFS pointer, not the file itself"
    ):
        blocks(tmp_path / name)


@pytest.mark.parametrize(
    "repeated",
    [
        *(
            "<",
            "<a ",
            "<!--",
            "<a b='",
            "&",
            "&#",
            "(",
            "[[",
            "''",
            '"',
            " ",
            "\n",
            "a",
            "a. ",
            "A.",
        ),
        *("e.g. ", "1.", "...", "\u3002", "\u0301", "\u0f71\u0f72", "\u1100", "a | ", "\ufeff"),
    ],
)
@pytest.mark.parametrize("text_layout", ["file", "lines"])
def test_cleaning_takes_time_in_proportion_whatever_is_repeated(tmp_path, repeated, text_layout):
    path = tmp_path / "a.txt"
    path.write_text(f"x {repeated * 100_000} y\n")
    steps = ("html", "controls", "whitespace", "nfc", "boilerplate")
    blocks(path, text_layout=text_layout, cleaning=("controls",))  # compiles
    began = time.process_time()
    blocks(path, text_layout=text_layout, cleaning=steps)
    assert time.process_time() - began < 10

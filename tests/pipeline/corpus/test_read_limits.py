"""Corpora that ask for all memory or hours: bounded, and reported in one line."""

import gzip
import tracemalloc

import pytest
from behavior.timing import superlinear_growth

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
    ("make_content", "layout"),
    [
        (lambda size: b"\n" * size, "file"),
        (lambda size: b"x" + b"\n" * size + b"y", "sentences"),
        (lambda size: b"x" + b" " * size + b"\n" + b" " * size + b"y", "file"),
        (lambda size: b"x" + b" " * size + b"\n" + b" " * size + b"\ny", "sentences"),
        pytest.param(lambda size: b"x\n" * size, "file", marks=pytest.mark.slow),
        pytest.param(
            lambda size: b"x\n" * size + b"\n" + b"x\ny\n", "sentences", marks=pytest.mark.slow
        ),
    ],
    ids=["ends", "ends in", "blanks", "blanks, ends", "lines", "lines, then a pair"],
)
def test_white_space_is_looked_at_once_to_find_the_layout(tmp_path, make_content, layout):
    def made(size):
        path = tmp_path / f"{size}.txt"
        path.write_bytes(make_content(size))
        return path

    def found(path):
        return TextReader("auto").resolved(str(path)).layout

    assert found(made(3_000_000)) == layout
    assert superlinear_growth(found, made, size=1_000_000) is None


def test_namespaces_are_found_in_time_in_proportion_to_the_head(tmp_path):
    path = tmp_path / "a.xml"

    def made(size):
        path.write_bytes(b"<mediawiki>" + b'<namespace key="6"' * size)
        return VocabConfig(input=(str(path),), output="vocab.txt")

    def read(config):
        MediaWikiReader.for_file(str(path), config)

    assert superlinear_growth(read, made, size=50_000) is None


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
    def made(size):
        path = tmp_path / f"{size}.txt"
        path.write_text(f"x {repeated * size} y\n")
        return path

    def cleaned(path):
        blocks(path, text_layout=text_layout, cleaning=steps)

    steps = ("html", "controls", "whitespace", "nfc", "boilerplate")
    assert superlinear_growth(cleaned, made, size=100_000) is None

"""The text of corpora of several shapes, estimated from a sample, against the exact number."""

import csv
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.config.sections import PreprocessConfig
from pipeline.beam.files import FileInfo
from pipeline.report.corpus.page import corpus_at
from pipeline.report.corpus.sample import read_sample, text_scale

SAMPLE_BYTES = 200_000


def texts_of(count, seed, letters="abcdefghij"):
    """Documents of 5 to 60 words."""
    drawn = np.random.default_rng(seed)
    words = ["".join(drawn.choice(list(letters), length)) for length in drawn.integers(2, 9, 500)]
    return [" ".join(drawn.choice(words, drawn.integers(5, 60))) for _ in range(count)]


def rows_of(texts, noise):
    """Rows with another column, of so many characters that compress less well than the text."""
    drawn = np.random.default_rng(len(texts))
    return [{"id": drawn.bytes(noise).hex(), "text": text} for text in texts]


def as_jsonl(texts, path, noise=20):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(texts, noise)))


def as_gzipped_jsonl(texts, path):
    lines = "".join(json.dumps(row) + "\n" for row in rows_of(texts, 20))
    path.write_bytes(gzip.compress(lines.encode(), compresslevel=1))


def as_csv(texts, path):
    lines = io.StringIO()
    writer = csv.DictWriter(lines, ["id", "text"])
    writer.writeheader()
    writer.writerows(rows_of(texts, 60))
    path.write_text(lines.getvalue())


def as_parquet(texts, path):
    pq.write_table(pa.Table.from_pylist(rows_of(texts, 90)), path, row_group_size=900)


def as_documents(texts, path):
    path.write_bytes(gzip.compress("\n\n".join(texts).encode()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "write", "letters"),
    [
        ("a.jsonl", as_jsonl, "abcdefghij"),
        ("a.jsonl", as_jsonl, "абвгдежзик"),  # six characters each, where JSON escapes them
        ("a.jsonl.gz", as_gzipped_jsonl, "abcdefghij"),
        ("a.csv", as_csv, "abcdefghij"),
        ("a.parquet", as_parquet, "abcdefghij"),
        ("a.txt.gz", as_documents, "abcdefghij"),
    ],
)
def test_the_text_of_files_is_estimated_within_some_percent(tmp_path, name, write, letters):
    files, exact = [], 0
    for number, count in enumerate((2_000, 4_000, 500)):
        path = tmp_path / f"{number}-{name}"
        texts = texts_of(count, number, letters)
        write(texts, path)
        files.append(FileInfo(str(path), path.stat().st_size))
        exact += len("".join(texts).encode())
    config = PreprocessConfig(input=(str(tmp_path / "*"),), vocab="v", output="o")
    sample = read_sample(config, files, most_bytes=SAMPLE_BYTES)
    read = sum(each.text_bytes for each in sample.files)
    assert not sample.is_whole and read < exact / 2
    assert read * text_scale(config, sample, files) == pytest.approx(exact, rel=0.05)


@pytest.mark.slow
def test_files_that_differ_are_estimated_each_by_itself(tmp_path):
    """One has little beside its text, the other is mostly something else."""
    files, exact = [], 0
    for number, noise in enumerate((2, 400)):
        path, texts = tmp_path / f"{number}.jsonl", texts_of(3_000, number)
        as_jsonl(texts, path, noise)
        files.append(FileInfo(str(path), path.stat().st_size))
        exact += len("".join(texts).encode())
    config = PreprocessConfig(input=(str(tmp_path / "*"),), vocab="v", output="o")
    sample = read_sample(config, files, most_bytes=SAMPLE_BYTES)
    read = sum(each.text_bytes for each in sample.files)
    assert read * text_scale(config, sample, files) == pytest.approx(exact, rel=0.05)


@pytest.mark.slow
def test_the_beginning_of_a_compressed_file_stands_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.corpus.readers.splits._HEAD_BYTES", 400_000)
    path, texts = tmp_path / "a.jsonl.gz", texts_of(20_000, 1)
    as_gzipped_jsonl(texts, path)
    assert path.stat().st_size > 1_500_000
    files = [FileInfo(str(path), path.stat().st_size)]
    config = PreprocessConfig(input=(str(path),), vocab="v", output="o")
    sample = read_sample(config, files, most_bytes=SAMPLE_BYTES)
    read = sum(each.text_bytes for each in sample.files)
    exact = len("".join(texts).encode())
    assert read * text_scale(config, sample, files) == pytest.approx(exact, rel=0.08)


@pytest.fixture
def corpus(tmp_path):
    for number in range(4):
        text = "".join(f"document {number} {line}\nof many\n\n" for line in range(5000))
        (tmp_path / f"{number}.txt").write_text(text)
    return corpus_at(PreprocessConfig(input=(str(tmp_path / "*.txt"),)))


def test_a_small_corpus_is_read_whole(corpus):
    sample = read_sample(corpus.config, corpus.files)
    assert sample.is_whole
    assert sample.note.startswith("All of it: ")
    assert sum(block.num_documents for block in sample.blocks) == 20_000


def test_of_a_large_one_the_beginnings_of_its_files_are_read(corpus):
    most = 300_000
    sample = read_sample(corpus.config, corpus.files, most_bytes=most)
    assert not sample.is_whole
    assert {block.source for block in sample.raw} == {file.path for file in corpus.files}
    assert min(block.document_lines[0] for block in sample.blocks) == 1
    assert sum(block.texts.data.nbytes for block in sample.raw) < 2 * most
    assert "of 4 files spread over the corpus" in sample.note


def test_a_huge_document_leaves_room_for_no_other_file(corpus, tmp_path):
    (tmp_path / "1.txt").write_text("Some text.\n" * 20_000)
    sample = read_sample(
        corpus.config,
        corpus_at(PreprocessConfig(input=(str(tmp_path / "*.txt"),))).files,
        most_bytes=100_000,
    )
    assert not sample.is_whole
    assert [block.source for block in sample.raw][-1] == str(tmp_path / "1.txt")
    assert "the beginnings of 2 of 4 files" in sample.note

"""A sample is bounded, spread over the files, and says what it is."""

import pytest

from bert_tf.config.sections import PreprocessConfig
from pipeline.report.corpus.page import corpus_at
from pipeline.report.corpus.sample import read_sample


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

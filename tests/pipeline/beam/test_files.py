"""Globs, the reading transform from them to blocks, and the report of their files."""

import io
import json
import os

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, VocabConfig
from pipeline.beam.files import (
    UncompressedFile,
    match_files,
    read_shared_files,
    write_shared_file,
)
from pipeline.beam.runner import run_pipeline
from pipeline.beam.storage import open_stored
from pipeline.corpus.document_block import DocumentBlock, document_hashes
from pipeline.corpus.read import ReadDocuments
from pipeline.corpus.readers.formats import look_at_text, make_reader
from pipeline.corpus.report import REJECTS, ReportCorpus, facts_of_block, read_report, write_lists


def test_globs_are_expanded_once_and_sorted(tmp_path):
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_text(name * 3)
    found = match_files([f"{tmp_path}/*.txt", f"{tmp_path}/a.txt", f"{tmp_path}/c.*"])
    assert [(file.path, file.bytes) for file in found] == [
        (f"{tmp_path}/{name}", 15) for name in ("a.txt", "b.txt", "c.csv")
    ]


def test_a_glob_without_files_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"x\*: no file matches; check the path and quote the"):
        match_files([f"{tmp_path}/x*"])
    with pytest.raises(UsageError, match=r"is a folder; no file in it ends in \.txt, "):
        match_files([str(tmp_path)])
    with pytest.raises(UsageError, match="no file system for nowhere://"):
        match_files(["nowhere://x/y"])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["a.txt", "wiki[en].txt", "wikie.txt"]),
        ("?.txt", ["a.txt"]),
        ("[ab].*", ["a.txt", "b.csv"]),
        ("./a*", ["./a.txt"]),
        ("a.txt", ["a.txt"]),
        ("wiki[en].txt", ["wiki[en].txt"]),
        ("x[1]/*.txt", ["x[1]/a.txt", "x[1]/b.txt"]),
        ("x[1]/", ["x[1]/a.txt", "x[1]/b.txt"]),
        ("*/*.txt", ["x[1]/a.txt", "x[1]/b.txt"]),
        ("x*/*/*", ["x[1]/y/c.txt"]),
        ("**/?.txt", ["x[1]/a.txt", "x[1]/b.txt", "x[1]/y/c.txt"]),
        ("**a.txt", ["a.txt", "x[1]/a.txt"]),
        ("x[1]/**/c.txt", ["x[1]/y/c.txt"]),
        (".*.txt", [".hidden.txt"]),
        (".git/*", [".git/d.txt"]),
    ],
)
def test_globs_and_literal_names_find_their_files(tmp_path, monkeypatch, pattern, expected):
    (tmp_path / "x[1]" / "y").mkdir(parents=True)
    for name in ("a.txt", "b.csv", "wiki[en].txt", "wikie.txt", "x[1]/a.txt", "x[1]/b.txt"):
        (tmp_path / name).touch()
    (tmp_path / "x[1]/y/c.txt").write_text("c")
    (tmp_path / "broken.txt").symlink_to("nothing")
    (tmp_path / ".git").mkdir()
    for name in (".hidden.txt", ".git/d.txt", "x[1]/.a.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert [file.path for file in match_files([pattern])] == expected
    absolute = f"{tmp_path}/{pattern}"
    assert [file.path for file in match_files([absolute])] == [
        f"{tmp_path}/{name}" for name in expected
    ]


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["README", "a.txt", "b.txt", "c.csv"], "my corpus/*.txt"),
        (["README.md", ".a.txt", ".git/b.txt", "c.jsonl.gz", "d.jsonl.gz"], "my corpus/*.jsonl.gz"),
        (["README", "x/a.TXT", "x/y/b.TXT", "x/y/c.csv"], "my corpus/**.TXT"),
        (["a.csv", "x/b.txt", "x/c.txt"], "my corpus/*.csv"),
    ],
)
def test_the_glob_to_give_instead_of_a_folder_works(tmp_path, monkeypatch, names, hint):
    for name in names:
        (tmp_path / "my corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "my corpus" / name).write_text("text\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is a folder") as refused:
        match_files(["my corpus"])
    assert str(refused.value) == f"my corpus: is a folder; name its files, e.g. '{hint}'"
    ending = hint.rpartition("*")[2]
    visible = [f"my corpus/{name}" for name in names if not name.startswith(".")]
    found = [file.path for file in match_files([hint])]
    assert found
    assert found == [path for path in visible if path.endswith(ending)]
    config = build_section(VocabConfig, {"input": (hint,), "output": "y"})
    assert all(make_reader(path, config) for path in found if not path.endswith((".csv", "gz")))


def test_a_file_of_no_known_format_is_reported_with_what_to_do(tmp_path):
    config = build_section(VocabConfig, {"input": ("x",), "output": "y"})
    with pytest.raises(UsageError, match=r"README: the file name .*--set vocab\.format=text\|"):
        make_reader(f"{tmp_path}/README", config)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("none/*.txt", "no file matches; check the path and quote the glob"),
        ("a.txt/*", "no file matches; check the path and quote the glob"),
        ("[", "no file matches; check the path and quote the glob"),
        ("", "no such file; check the path"),
        ("none.txt", "no such file; check the path"),
        ("x/", "this folder has no files, except hidden ones; check the path"),
    ],
)
def test_what_matches_nothing_is_refused(tmp_path, monkeypatch, pattern, message):
    (tmp_path / "a.txt").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        match_files([pattern])
    assert str(refused.value) == f"{pattern}: {message}"


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).touch()
    (tmp_path / "café.txt").touch()
    assert len(match_files([f"{tmp_path}/café.txt"])) == 1
    message = r"^'.*/caf\\udce9\.txt': the name of this file is not UTF-8; rename it$"
    for pattern in ("*.txt", os.fsdecode(b"caf\xe9.txt")):
        with pytest.raises(UsageError, match=message):
            match_files([f"{tmp_path}/{pattern}"])


@pytest.mark.parametrize("name", ["work", "wiki[en] *?"])
def test_shared_files_appear_whole(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    for _ in range(2):
        write_shared_file(str(folder), "a-1", b"x")
    write_shared_file(str(folder), "a-0", b"y")
    assert read_shared_files(str(folder), "a-*") == [b"y", b"x"]
    assert len(list(folder.iterdir())) == 2
    with pytest.raises(InputError, match="results have not arrived"):
        read_shared_files(str(folder), "b-*")


def test_a_worker_that_does_not_see_the_folder_refuses_to_write(tmp_path):
    with pytest.raises(UsageError, match=r"/elsewhere: worker \S+ does not see this folder"):
        write_shared_file(str(tmp_path / "elsewhere"), "a", b"x")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # starts worker processes
def test_every_document_is_kept_dropped_or_rejected_and_listed(tmp_path):
    (tmp_path / "b.csv").write_text('id,text\n1,a\n2\n3,"x\n4,\n')
    (tmp_path / "a.txt").write_bytes(b"x y. z\n\nw\n\n\xff\n" * 50)
    config = build_section(
        VocabConfig,
        {"input": (f"{tmp_path}/*",), "output": "y", "block_megabytes": "0.01"},
    )
    folder = tmp_path / "report"
    folder.mkdir()

    def build(pipeline):
        files = match_files(config.input)
        read = ReadDocuments(config, files, look_at_text(config, files).layouts)
        facts = pipeline | read | beam.Map(facts_of_block)
        _ = facts | ReportCorpus(str(folder))

    run_pipeline(
        build_section(RunnerConfig, {}), build, console=Console(io.StringIO()), input_bytes=1
    )
    report = read_report(str(folder))
    assert report.counts() == {
        "documents": 101,
        "sentences": 101,
        "copies": 98,
        "dropped": {"empty document": 1},
        "dropped_lines": {},
        "replaced": {},
        "rejected": {"invalid UTF-8": 50, "quote is not closed": 1, "too few cells": 1},
    }
    assert report.bytes == 50 * len("x y. zw") + len("a")
    assert write_lists(str(folder), tmp_path)[REJECTS] == 52
    listed = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert [reject["line"] for reject in listed] == [*range(5, 251, 5), 3, 4]
    assert listed[0] == {
        "source": f"{tmp_path}/a.txt",
        "line": 5,
        "reason": "invalid UTF-8",
        "detail": "at byte 1",
    }


def block_of(*documents):
    sentences = [sentence for document in documents for sentence in document]
    return DocumentBlock(
        source="x",
        index=0,
        sentences=pa.array(sentences, pa.string()),
        document_offsets=np.cumsum([0, *map(len, documents)]),
        line_offsets=np.arange(sum(map(len, documents)) + 1),
        document_lines=np.ones(len(documents), np.int64),
    )


def test_documents_are_known_by_their_sentences():
    hashes = document_hashes(block_of(["a", "b"], ["ab"], ["a", "b"], ["b", "a"], ["a long one"]))
    assert hashes.dtype == np.uint64
    assert hashes[0] == hashes[2]
    assert len(set(hashes.tolist())) == 4
    assert document_hashes(block_of(["a long one"]))[0] == hashes[4]


def test_document_hashes_stay_as_they_are():
    """Other values would hold out other documents and change every random choice."""
    assert [hex(h) for h in document_hashes(block_of(["Hello."], ["Grüße", "an alle!"]))] == [
        "0xf465dc0e79fde156",
        "0xd9a8987017715709",
    ]


def test_document_hashes_are_spread():
    hashes = document_hashes(block_of(*([f"document {n}"] for n in range(4000))))
    tenths = np.bincount((hashes >> np.uint64(60)).astype(np.int64), minlength=16)
    assert 180 < tenths.min() <= tenths.max() < 320


def test_a_file_that_cannot_be_unpacked_is_closed(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"text")
    opened = []
    monkeypatch.setattr(
        "pipeline.beam.files.open_stored",
        lambda path: opened.append(open_stored(path)) or opened[0],
    )

    def unpack(stream, name):
        raise InputError(f"{name}: is damaged")

    with pytest.raises(InputError, match="is damaged"):
        UncompressedFile(str(path), unpack=unpack)
    assert opened[0].closed

"""Texts to exclude come from every kind of file, or the file is refused."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections import PreprocessConfig
from pipeline.beam.files import match_files
from pipeline.corpus.curation.excluded_files import match_excluded, read_excluded
from pipeline.corpus.curation.exclusion import find_shared
from tests.pipeline.corpus.conftest import make_block

FIRST = "Unflinchingly bleak, and desperate"
SECOND = "the clocks were striking thirteen, one after the other, all over the old town"
ANSWER = "nobody but the keeper of the old clocks"
SQUAD = {
    "data": [{"title": "t", "paragraphs": [{"context": SECOND, "qas": [
        {"id": "1", "question": FIRST, "answers": [{"text": ANSWER, "answer_start": 0}]},
        {"id": "2", "question": "And what of it?", "answers": []},
    ]}]}]
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(*patterns, corpus=(), **values):
    config = PreprocessConfig(input=("x.txt",), exclude=patterns, **values)
    return read_excluded(config, match_excluded(config, match_files(corpus)))


def places_of(excluded, *texts):
    """Return the place that each text is from; None if it is not excluded."""
    found = []
    for text in texts:
        block = make_block([[text]])
        shared = find_shared(block, excluded)
        lines = excluded.text_lines[shared.texts].tolist()
        found.append(lines[0] if lines else None)
    return found


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.tsv", f"sentence\tlabel\n{FIRST}\t0\n{SECOND}\t1\n", [2, 3]),
        ("a.tsv", f"{FIRST}\t0\n{SECOND}\t1\n", [1, 2]),  # no header, which is read as one
        ("a.csv", f'id,text,other\r\n1,"{SECOND}","{FIRST}"\r\n', [2, 2]),
        ("a.jsonl", f'{{"n": 1, "of": {{"texts": ["{SECOND}"]}}}}\n{{"t": "{FIRST}"}}\n', [2, 1]),
        ("a.json", json.dumps(SQUAD, indent=1), [9, 9]),
        ("a.txt", f"{FIRST}.\n\n{SECOND}.\n\nA third paragraph.\n", [1, 1]),
    ],
)
def test_all_texts_of_a_file_are_excluded(here, name, content, lines):
    (here / name).write_text(content)
    excluded, warnings = read("*")
    assert places_of(excluded, FIRST, SECOND) == lines
    assert places_of(excluded, "Something else than that") == [None]
    assert excluded.files == (name,) and not warnings


def test_so_are_answers_and_cells_of_parquet(here):
    (here / "a.json").write_text(json.dumps(SQUAD))
    table = {"n": [1, 2], "texts": [[FIRST], []], "text": [None, SECOND]}
    pq.write_table(pa.table(table), here / "b.parquet")
    excluded, _ = read("a.json")
    assert places_of(excluded, ANSWER, "And what of it?") == [1, 1]
    assert places_of(read("b.parquet")[0], FIRST, SECOND) == [1, 2]


def test_texts_are_cleaned_as_the_corpus_is(here):
    (here / "a.tsv").write_text(f"text\n<b>{FIRST}</b>\nÜber allen cafe\u0301s ist Ruh\n")
    excluded, _ = read("a.tsv", cleaning=("html", "nfc"))
    assert places_of(excluded, FIRST, "über allen cafés ist ruh") == [2, 3]


def test_rows_that_cannot_be_read_are_told(here):
    (here / "a.jsonl").write_bytes(f'{{"a": "{FIRST}"}}\nno JSON\n{{"a": "\xff"}}\n'.encode("l1"))
    excluded, (warning,) = read("*.jsonl")
    assert places_of(excluded, FIRST) == [1]
    assert warning == (
        "--exclude a.jsonl: not read, so not excluded: 1 × not JSON, first at a.jsonl:2 "
        "(Expecting value: line 1 column 1 (char 0)); 1 × invalid UTF-8, first at a.jsonl:3"
    )


@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", "... --\n"), ("a.tsv", "\t\n"), ("a.jsonl", '{"n": 1}\n')]
)
def test_a_file_without_text_is_refused(here, name, content):
    (here / name).write_text(content)
    with pytest.raises(InputError, match=name):
        read("a.*")


def test_patterns_that_match_nothing_or_the_corpus_are_refused(here):
    for name in ("a.txt", "b.txt"):
        (here / name).write_text(FIRST)
    with pytest.raises(UsageError, match=r"c\*\.txt: no file matches"):
        read("c*.txt")
    with pytest.raises(UsageError, match=r"--exclude \*\.txt: b\.txt is also a file of --input"):
        read("a.txt", "*.txt", corpus=["b.txt"])
    with pytest.raises(UsageError, match=r"--exclude b\.txt: b\.txt is also a file of --input"):
        read("b.txt", corpus=[str(here / "*.txt")])


@pytest.mark.parametrize("name", ["one.tsv", "one.csv"])
def test_a_single_row_is_a_text_though_it_may_be_a_header(here, name):
    mark = "\t" if name.endswith("tsv") else ","
    (here / name).write_text(f"{ANSWER}{mark}1\n")
    excluded, warnings = read(name)
    assert warnings == []
    assert places_of(excluded, f"It was {ANSWER} who came") != [None]

"""Rows of tagged text from tables and CoNLL files."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.tasks.tagging.rows.tagged_rows import TagColumns
from bert_tf.tasks.tagging.rows.tagged_texts import read_tagged_texts

COLUMNS = TagColumns(text="text", tokens=None, tags=None, entities="entities")
WORDS = [["Ada", "Lovelace", "'s"], ["x"]]
TAGS = [["B-per", "I-per", "O"], ["O"]]


def marked(texts):
    """What the marks of each row cover, and their tags."""
    return [
        [
            (text[texts.starts[mark] : texts.ends[mark]], texts.tags[mark])
            for mark in range(texts.offsets[row], texts.offsets[row + 1])
        ]
        for row, text in enumerate(texts.texts)
    ]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_same_rows_from_every_format(tmp_path):
    rows = [{"tokens": words, "tags": tags} for words, tags in zip(WORDS, TAGS, strict=True)]
    write_rows(tmp_path / "a.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    joined = [f"{' '.join(row['tokens'])},{' '.join(row['tags'])}\n" for row in rows]
    (tmp_path / "a.csv").write_text("tokens,tags\n" + "".join(joined))
    pairs = [
        "".join(f"{word} {tag}\n" for word, tag in zip(*row.values(), strict=True)) for row in rows
    ]
    (tmp_path / "a.conll").write_text("\n".join(pairs))
    for name in ("a.jsonl", "a.parquet", "a.csv", "a.conll"):
        found = read_tagged_texts(tmp_path / name, COLUMNS)
        assert found.texts == ["Ada Lovelace 's", "x"]
        assert marked(found) == [
            list(zip(words, tags, strict=True)) for words, tags in zip(WORDS, TAGS, strict=True)
        ]
    first = read_tagged_texts(tmp_path / "a.conll", COLUMNS, max_rows=1)
    assert len(first) == 1 and first.mark_lines == [1, 2, 3]


def test_entities_as_objects_lists_and_json_text(tmp_path):
    text = "née Ada Lovelace 😀, London"
    objects = [{"start": 20, "end": 26, "label": "loc"}, {"start": 4, "end": 16, "label": "per"}]
    lists = [[20, 26, "loc"], [4, 16, "per"]]
    rows = [
        {"text": text, "entities": form} for form in (objects, lists, json.dumps(objects), None)
    ]
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS)
    assert not found.has_words
    assert marked(found) == [[("Ada Lovelace", "per"), ("London", "loc")]] * 3 + [[]]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "tags are not as many as words"),
        ({"tokens": None, "tags": ["O"]}, "column 'tokens' is empty"),
        ({"tokens": ["a", None], "tags": ["O", "O"]}, "column 'tokens' is no list of texts"),
        ({"tokens": ["a"], "tags": {"a": "O"}}, "column 'tags' is no list of texts"),
        ({"tokens": ["", " "], "tags": ["O", "O"]}, "has no words"),
        ({"tokens": [], "tags": []}, "has no words"),
    ],
)
def test_unusable_words_are_rejected_with_their_line(tmp_path, row, reason):
    good = {"tokens": ["a"], "tags": ["O"]}
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", [good, row, good]), COLUMNS)
    assert len(found) == 2
    assert [(reject.line, reject.reason) for reject in found.rejects] == [(2, reason)]


@pytest.mark.parametrize(
    ("entities", "reason"),
    [
        ([{"start": 0, "end": 9, "label": "x"}], "entity covers no text"),
        ([{"start": 2, "end": 2, "label": "x"}], "entity covers no text"),
        ([{"start": -3, "end": 2, "label": "x"}], "entity covers no text"),
        ([{"start": 3, "end": 4, "label": "x"}], "entity covers no text"),
        ([{"start": 0, "label": "x"}], "entity is not {start, end, label}"),
        ([{"start": 0, "end": True, "label": "x"}], "entity is not {start, end, label}"),
        ([[0, 1]], "entity is not {start, end, label}"),
        (["x"], "entity is not {start, end, label}"),
        (
            [{"start": 0, "end": 3, "label": "x", "text": "def"}],
            "entity is not at its place",
        ),
        ([[0, 3, "x"], [2, 7, "y"]], "entities overlap"),
        ("no list", "column 'entities' is no list of entities"),
    ],
)
def test_unusable_entities_are_rejected(tmp_path, entities, reason):
    rows = [{"text": "abc def", "entities": entities}, {"text": "fine", "entities": []}]
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS)
    assert found.texts == ["fine"]
    assert [(reject.line, reject.reason) for reject in found.rejects] == [(1, reason)]


def test_columns_may_have_other_names(tmp_path):
    columns = TagColumns(text="body", tokens="words", tags="pos", entities="ner")
    path = write_rows(tmp_path / "a.jsonl", [{"words": ["a"], "pos": [3]}])
    assert marked(read_tagged_texts(path, columns)) == [[("a", "3")]]
    spans = TagColumns(text="body", tokens=None, tags=None, entities="ner")
    path = write_rows(tmp_path / "b.jsonl", [{"body": "ab", "ner": [[0, 1, "x"]]}])
    assert marked(read_tagged_texts(path, spans)) == [[("a", "x")]]


def test_wrong_columns_are_refused_with_those_there_are(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", [{"words": ["a"], "tags": ["O"]}])
    with pytest.raises(UsageError, match=r"has neither .* it has 'words', 'tags'; name its"):
        read_tagged_texts(path, COLUMNS)
    path = write_rows(tmp_path / "b.jsonl", [{"text": "a", "spans": []}])
    with pytest.raises(UsageError, match="no column 'entities'"):
        read_tagged_texts(path, COLUMNS)
    (tmp_path / "c.conll").write_text("a O\n")
    named = TagColumns(text="text", tokens=None, tags="upos", entities="entities")
    with pytest.raises(UsageError, match="--tag-column upos: columns of CoNLL files go by number"):
        read_tagged_texts(tmp_path / "c.conll", named)
    with pytest.raises(UsageError, match="CoNLL files have no header"):
        read_tagged_texts(tmp_path / "c.conll", COLUMNS, dialect=TableDialect(has_header=False))


def test_a_file_without_usable_rows_is_refused(tmp_path):
    (tmp_path / "a.conll").write_text("")
    with pytest.raises(InputError, match="has no rows"):
        read_tagged_texts(tmp_path / "a.conll", COLUMNS)
    (tmp_path / "b.conll").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"the first: .*b.conll:1: wrong number of columns"):
        read_tagged_texts(tmp_path / "b.conll", COLUMNS)

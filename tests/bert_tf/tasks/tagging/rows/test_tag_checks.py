"""Tags that are not well-formed, of another scheme, or unknown."""

from __future__ import annotations

import io

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.tasks.tagging.rows.tag_checks import checked_tags, scheme_of
from bert_tf.tasks.tagging.rows.tagged_rows import TagColumns
from bert_tf.tasks.tagging.rows.tagged_texts import read_tagged_texts

COLUMNS = TagColumns(text="text", tokens=None, tags=None, entities="entities")


@pytest.fixture
def check(tmp_path):
    """Writes sentences of tags, and returns what is made of them and the lines for the user."""

    def check_rows(*rows, scheme="bio", kinds=None):
        path = tmp_path / "a.conll"
        lines = ["".join(f"w {tag}\n" for tag in row.split()) for row in rows]
        path.write_text("\n".join(lines))
        log = io.StringIO()
        texts = read_tagged_texts(path, COLUMNS)
        return checked_tags(texts, scheme, kinds, Console(log)), log.getvalue()

    return check_rows


def test_well_formed_tags_stay(check):
    texts, log = check("B-x I-x O B-x", "B-y B-y")
    assert texts.tags == ["B-x", "I-x", "O", "B-x", "B-y", "B-y"]
    assert log == "" and not texts.rejects


def test_ill_formed_tags_are_read_as_conlleval_does_and_reported(check):
    texts, log = check("O I-x I-x", "B-x I-y", "I-x")
    assert texts.tags == ["O", "B-x", "I-x", "B-x", "B-y", "B-x"]
    assert "3 tags of 6 not well-formed BIO, first at line 2: I-x between O and I-x" in log
    assert "expected B-x; read as conlleval does" in log
    texts, log = check("B-x O", "B-x L-x U-x", scheme="bilou")
    assert texts.tags == ["U-x", "O", "B-x", "L-x", "U-x"]
    assert "first at line 1: B-x between the beginning and O, expected U-x" in log


def test_tags_of_another_scheme_are_converted(check):
    texts, log = check("B-x L-x U-y O", "B-x I-x L-x")
    assert texts.tags == ["B-x", "I-x", "B-y", "O", "B-x", "I-x", "I-x"]
    assert log == ""


def test_unusable_tags_reject_their_sentence(check):
    good = "B-x I-x O O O O O O O B-x B-x B-x B-x B-x B-x B-x B-x B-x B-x B-x B-x B-x B-x B-x B-x"
    texts, _ = check(good, "O I-", "O")
    assert len(texts) == 2
    assert [str(reject).partition("conll:")[2] for reject in texts.rejects] == [
        "27: tag is not one of BIO (line 28: 'I-')"
    ]
    texts, _ = check("B-x O", "B-z O", kinds=("x", "y"))
    assert len(texts) == 1
    assert texts.rejects[0].reason == "tag is not one the model knows"
    with pytest.raises(InputError, match="none of its rows can be used; the first: .*'B-z'"):
        check("B-z O", kinds=("x",))


def test_plain_tags_are_any(check):
    texts, log = check("NN VB", "B-x I-", scheme="plain")
    assert texts.tags == ["NN", "VB", "B-x", "I-"]
    assert log == ""
    texts, _ = check("NN VB", "NN", scheme="plain", kinds=("NN",))
    assert len(texts) == 1


def test_entities_inside_of_words_are_reported(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Londoner 北京人", "entities": [[0, 6, "loc"], [9, 11, "loc"]]}\n')
    log = io.StringIO()
    texts = read_tagged_texts(path, COLUMNS)
    assert scheme_of(texts, "auto") == "bio" and scheme_of(texts, "iobes") == "iobes"
    checked_tags(texts, "bio", None, Console(log))
    assert (
        "1 entity of 2 begin or end inside of a word, first at line 1 ('London')" in log.getvalue()
    )

"""Tags that are not well-formed, of another scheme, or unknown."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.tasks.tagging.row_forms import TagColumns
from bert_tf.tasks.tagging.tagged_texts import (
    check_sentence_column,
    checked_tags,
    read_tagged_texts,
    scheme_of,
    usual_tags,
)

COLUMNS = TagColumns(text="text", tokens=None, tags=None, entities="entities")


@pytest.fixture
def check(tmp_path):
    """Write sentences of tags, and return their checked tags and the lines for the user."""

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
    with pytest.raises(InputError, match="its only row cannot be used: 1 × tag is not one.*'B-z'"):
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
    assert "1 entity of 2 begin or end inside a word, first at line 1 ('London')" in log.getvalue()


@pytest.mark.parametrize(
    ("text", "entity", "is_cut"),
    [
        *(("영희가 왔다", "영희", True), ("영희가 왔다", "영희가", False)),
        *(("たろうが来た", "たろう", True), ("カタカナ", "カタ", True)),
        *(("東京は雨", "東京", False), ("東京都", "京", False)),
        *(("€100 paid", "100", True), ("$100 paid", "100", False), ("20°C", "20", True)),
        *(("U.S.-led", "U.S", False), ("it's", "it", False), ("กรุงเทพ", "กรุง", True)),
        *(
            ("Lima\u200b.", "Lima", False),
            ("Li\u200bma", "Li", True),
            ("cafe\u0301s", "cafe", True),
        ),
    ],
)
def test_words_of_all_scripts_can_be_cut(tmp_path, text, entity, is_cut):
    path, log = tmp_path / "a.jsonl", io.StringIO()
    start = text.index(entity)
    row = {"text": text, "entities": [[start, start + len(entity), "x"]]}
    path.write_text(f"{json.dumps(row)}\n")
    checked_tags(read_tagged_texts(path, COLUMNS), "bio", None, Console(log))
    assert ("inside a word" in log.getvalue()) == is_cut


def test_words_without_characters_interrupt_no_entity(tmp_path):
    """A file without them has the same tags, in any scheme."""
    rows = [
        (["Ann", "\n", "Lee", "left"], ["B-p", "O", "I-p", "O"]),
        (["\u200b", "Oslo", "\u0301", "!"], ["O", "B-l", "I-l", "O"]),
    ]
    path, log = tmp_path / "a.jsonl", io.StringIO()
    lines = [json.dumps({"tokens": words, "tags": tags}) for words, tags in rows]
    path.write_text("\n".join(lines))
    read = read_tagged_texts(path, COLUMNS)
    found = checked_tags(read, "bio", None, Console(log))
    assert found.tags == ["B-p", "I-p", "I-p", "O", "O", "B-l", "O", "O"]
    assert log.getvalue() == ""


@pytest.fixture
def usual(tmp_path):
    """Write a sentence of tags, and return them as the schemes spell them, and the lines."""

    def read_tags(tags, scheme="auto", names=(), known=()):
        path = tmp_path / "a.conll"
        path.write_text("".join(f"w {tag}\n" for tag in tags.split()) + "\nw O\n")
        log = io.StringIO()
        texts = usual_tags(read_tagged_texts(path, COLUMNS), scheme, names, Console(log), known)
        return " ".join(texts.tags[:-1]), texts, log.getvalue()

    return read_tags


NAMES = ("O", "B-PER", "I-PER", "B-LOC")


def test_numbers_are_refused_without_names(usual):
    with pytest.raises(
        UsageError, match=r"a\.conll: its tags are the numbers 0 to 3.*--tag-names O"
    ):
        usual("0 1 2 3")
    with pytest.raises(UsageError, match="the numbers -100 to 1"):
        usual("-100 0 1")
    with pytest.raises(UsageError, match=r"the numbers 0\.0 to 10\.0"):
        usual("10.0 0.0 2.0")
    assert usual("0 1 2 3", "plain")[0] == "0 1 2 3"
    assert usual("0 1 2 3", "plain", known={"0", "1", "2", "3"})[0] == "0 1 2 3"


def test_numbers_have_the_names_that_are_given(usual):
    tags, _, log = usual("0 1 2 3", names=NAMES)
    assert (tags, log) == ("O B-PER I-PER B-LOC", "")
    assert usual("O B-PER I-PER", names=NAMES)[0] == "O B-PER I-PER"
    assert usual("0.0 1.0 2.0", names=NAMES)[0] == "O B-PER I-PER"
    assert usual("o b_PER i_PER", names=NAMES)[0] == "O B-PER I-PER"
    assert usual("0 1 2", names=("o", "b-x", "i-x"))[0] == "O B-x I-x"
    _, texts, _ = usual("0 9", names=NAMES)
    assert [str(each).partition(": ")[2] for each in texts.rejects] == [
        "tag is not a number of --tag-names (line 2: '9')"
    ]


def test_other_spellings_are_said_in_a_line(usual):
    tags, texts, log = usual("B-x M-x E-x 0 S-y")
    assert tags == "B-x I-x E-x O S-y"
    assert log.endswith("'M-x' is read as I-x, '0' as O (--scheme plain: as they are)\n")
    assert scheme_of(texts, "auto") == "iobes"
    assert usual("b-x o", known={"b-x"})[0] == "b-x O"
    assert usual("b-x o", "plain")[0] == "b-x o"


def test_tags_of_which_only_some_have_a_prefix_are_refused(usual):
    _, texts, _ = usual("B-x I-x LOC")
    with pytest.raises(
        UsageError, match="2 of 3 words .* 'B-x', the others .* 'LOC'; give --scheme"
    ):
        scheme_of(texts, "auto")
    assert scheme_of(texts, "plain") == "plain"
    assert scheme_of(usual("B-x LOC NN")[1], "auto") == "plain"


@pytest.fixture
def entities(tmp_path):
    """Return a row with a text and an entity of a label."""

    def rows(label):
        path = tmp_path / "a.jsonl"
        span = {"start": 0, "end": 1, "label": label}
        path.write_text(json.dumps({"text": "a b", "entities": [span]}) + "\n")
        return read_tagged_texts(path, COLUMNS)

    return rows


def test_names_of_tags_are_for_numbers(entities, tmp_path):
    with pytest.raises(UsageError, match="--tag-names is for tags of words that are numbers"):
        usual_tags(entities("x"), "auto", ["O", "B-x"], Console(io.StringIO()))
    (tmp_path / "b.conll").write_text("a B-x\nb O\n")
    texts, log = read_tagged_texts(tmp_path / "b.conll", COLUMNS), io.StringIO()
    assert usual_tags(texts, "auto", ["O", "B-x"], Console(log)).tags == ["B-x", "O"]
    assert "no tag is a number, so --tag-names is not used" in log.getvalue()


def test_brackets_are_refused(tmp_path):
    path = tmp_path / "b.conll"
    path.write_text("Ada (PERSON*\nB. *)\nran *\nin *\nOslo (GPE)\n")
    with pytest.raises(UsageError, match=r"brackets of CoNLL-2012 \(such as '\(PERSON\*'"):
        usual_tags(read_tagged_texts(path, COLUMNS), "auto", [], Console(io.StringIO()))


def test_numbers_for_a_model_of_names_are_refused_with_what_helps(tmp_path):
    (tmp_path / "b.conll").write_text("a 1\nb 0\n")
    texts = read_tagged_texts(tmp_path / "b.conll", COLUMNS)
    with pytest.raises(UsageError, match="the model was trained on names"):
        usual_tags(texts, "bio", [], Console(io.StringIO()), {"O", "B-x"})


def test_types_that_look_like_tags_of_words_are_warned_of(entities):
    log = io.StringIO()
    usual_tags(entities("B-x"), "auto", [], Console(log))
    assert "labels such as 'B-x', which look like tags of words" in log.getvalue()
    usual_tags(entities("x"), "auto", [], Console(log := io.StringIO()))
    assert log.getvalue() == ""


def test_a_column_of_sentences_is_for_a_word_per_row(entities, tmp_path):
    (tmp_path / "b.conll").write_text("a O\nb O\n")
    (tmp_path / "c.csv").write_text("sid,tokens,tags\n" + "1,a,O\n" * 3 + "2,b,O\n" * 3)
    for texts in (entities("x"), read_tagged_texts(tmp_path / "b.conll", COLUMNS)):
        check_sentence_column(texts, None)
        with pytest.raises(UsageError, match="--sentence-column is for tables with a word per row"):
            check_sentence_column(texts, "sid")
    columns = dataclasses.replace(COLUMNS, sentence="sid")
    check_sentence_column(read_tagged_texts(tmp_path / "c.csv", columns), "sid")


def test_a_type_of_another_case_is_named(check):
    with pytest.raises(InputError, match=r"not one the model knows, .*'B-per', likely 'PER': case"):
        check("B-per I-per O", kinds=["PER"])


def test_two_tags_without_a_prefix_are_refused(tmp_path):
    """However many words have them: one may be outside, and the other one a mistake."""
    path = tmp_path / "a.conll"
    path.write_text("a B-x\nb I-x\nc X\n\n" + "d X\ne O\n\n" * 50)
    texts = usual_tags(read_tagged_texts(path, COLUMNS), "auto", (), Console(io.StringIO()))
    with pytest.raises(
        UsageError, match="2 of 53 words with a tag have one such as 'B-x', the other"
    ):
        scheme_of(texts, "auto")
    assert scheme_of(texts, "plain") == "plain"

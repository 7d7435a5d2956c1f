"""CoNLL files as published and as people have them."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.formats.conll import is_conll, read_conll_sentences


@pytest.fixture
def read(tmp_path):
    def read_text(content, name="a.conll", dialect=PLAIN, **columns):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(read_conll_sentences(path, dialect, **columns))

    return read_text


def content(sentences):
    return [(found.words, found.tags) for found in sentences]


CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

-DOCSTART- -X- -X- O

Peter NNP B-NP B-PER
"""

CONLL_U = """# sent_id = 1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
4.1\tNada\t_\t_\t_\t_\t_\t_\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_
"""


def test_files_of_conll_2003(read):
    assert content(read(CONLL_2003)) == [
        (["EU", "rejects"], ["B-ORG", "O"]),
        (["Peter"], ["B-PER"]),
    ]
    assert content(read(CONLL_2003, tag_column=2))[1] == (["Peter"], ["NNP"])
    assert [found.lines for found in read(CONLL_2003)] == [[3, 4], [8]]


def test_files_of_conll_u(read):
    (found,) = read(CONLL_U, "a.conllu")
    assert found.words == ["Vamos", "nos", "a", "el", "mar"]
    assert found.tags == ["VERB", "PRON", "ADP", "DET", "NOUN"]
    assert found.line == 4 and found.lines == [4, 5, 7, 8, 10]
    (lemmas,) = read(CONLL_U, "a.conllu", word_column=3)
    assert lemmas.words[0] == "ir"


def test_hashtags_are_words_and_comments_are_not(read):
    rows = "# a comment with several words\n#tbt\tO\n#\tO\n# another comment\nme\tO\n"
    assert content(read(rows)) == [(["#tbt", "#", "me"], ["O", "O", "O"])]
    blanks = "#tbt O\n# global comment here\nme O\n"
    assert content(read(blanks)) == [(["#tbt", "me"], ["O", "O"])]


def test_line_ends_blank_lines_and_compression_do_not_matter(read):
    rows = "a\tO\nb c\tB-x\n\n\n \t\nd\tO"
    expected = [(["a", "b c"], ["O", "B-x"]), (["d"], ["O"])]
    assert content(read(rows)) == expected
    assert content(read(b"\xef\xbb\xbf" + rows.replace("\n", "\r\n").encode())) == expected
    assert content(read(gzip.compress(rows.encode()), "a.conll.gz")) == expected
    assert is_conll("A.CoNLLu.gz") and not is_conll("a.conll.jsonl")


@pytest.mark.parametrize(
    ("rows", "dialect", "fault"),
    [
        ("a O\nb\nc O\n", PLAIN, ("wrong number of columns", "line 2: 1 where a word has 2")),
        ("a O\nb B x\n", PLAIN, ("wrong number of columns", "line 2: 3 where a word has 2")),
        ("a\n", PLAIN, ("wrong number of columns", "line 1: 1 where a word has 2")),
        (b"a O\nb\xff O\n", PLAIN, ("invalid UTF-8", "line 2")),
        (
            "a O\n" + "b" * 50 + " O\n",
            TableDialect(max_row_characters=20),
            ("row is too long", "line 2: more than 20 characters"),
        ),
    ],
)
def test_a_bad_line_spoils_its_sentence_alone(read, rows, dialect, fault):
    rows = rows if isinstance(rows, bytes) else rows.encode()
    bad, good = read(rows + b"\nfine O\n", dialect=dialect)
    assert bad.fault == fault and bad.line == 1
    assert good.fault is None and good.words == ["fine"]


@pytest.mark.parametrize(
    "first", ["#\tid\tword\tner\n", "# a\tb\tc\n", "#id word tag\n", "The corpus of 2024\n\n"]
)
def test_a_first_line_of_other_columns_is_no_measure_of_the_others(read, first):
    *before, sentence = read(first + "#tbt\tB-x\na b\tO\nc\tO\n")
    assert (sentence.words, sentence.tags) == (["#tbt", "a b", "c"], ["B-x", "O", "O"])
    assert all(each.fault[0] == "wrong number of columns" for each in before)
    assert len(before) == (not first.startswith("#"))


@pytest.mark.parametrize(
    ("columns", "flag"), [({"tag_column": 3}, "--tag-column 3"), ({"word_column": 9}, "--tokens")]
)
def test_a_column_that_is_not_there_is_refused(read, columns, flag):
    with pytest.raises(UsageError, match=f"{flag}.* have 2 columns"):
        read("a O\n", **columns)


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
sentences = st.lists(
    st.lists(st.tuples(words.filter(lambda word: word[0] != "#"), words), min_size=1), min_size=1
)


@given(sentences, st.sampled_from(["\t", " "]))
def test_what_is_written_is_read(tmp_path_factory, rows, separator):
    path = tmp_path_factory.mktemp("conll") / "a.conll"
    lines = ["".join(f"{word}{separator}{tag}\n" for word, tag in row) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    found = content(read_conll_sentences(path, PLAIN))
    assert found == [tuple(map(list, zip(*row, strict=True))) for row in rows]


MULTICONER = """# id 5a01 domain=train
Paris _ _ B-LOC
is _ _ O

# id 5a02 domain=train
# _ _ O
Rome _ _ B-LOC
"""


def test_comments_with_as_many_columns_as_words(read):
    expected = [(["Paris", "is"], ["B-LOC", "O"]), (["#", "Rome"], ["O", "B-LOC"])]
    assert content(read(MULTICONER)) == expected
    assert content(read("# newdoc\na N\n# X\n")) == [(["a", "#"], ["N", "X"])]


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2009", "\u2028", "\u202f", "\u0085"])
def test_only_blanks_and_tabs_separate_columns(read, blank):
    (found,) = read(f"in O\n10{blank}000 I-X\n")
    assert (found.words, found.tags) == (["in", f"10{blank}000"], ["O", "I-X"])


@pytest.mark.parametrize("lines", ["anna,B-PER\n{}met,O\n", '"anna",B-PER\n{}"met",O\n'])
def test_commas_separate_columns_where_nothing_else_does(read, lines):
    found = content(read(lines.format("") + "\n" + lines.format('",",O\n')))
    assert found[0] == (["anna", "met"], ["B-PER", "O"])
    assert found[1] == (["anna", ",", "met"], ["B-PER", "O", "O"])
    (words,) = read(lines.format(""), has_tags=False)
    assert words.words == ["anna", "met"]


def test_words_with_commas_are_words(read):
    assert content(read("1,000\n,\nand\n", has_tags=False))[0][0] == ["1,000", ",", "and"]
    assert content(read("1,000 O\n, O\n"))[0][0] == ["1,000", ","]


def test_ten_columns_with_numbers_are_conll_u_under_any_name(read):
    for name in ("a.conll", "a.txt"):
        assert content(read(CONLL_U, name)) == content(read(CONLL_U, "a.conllu"))
    plain = "\n".join("\t".join(["w"] * 9 + ["O"]) for _ in range(3))
    assert content(read(plain)) == [(["w"] * 3, ["O"] * 3)]
    assert content(read(CONLL_U, word_column=3))[0][0][0] == "ir"


KLUE = "## id-{0}\t영희가 서울 역에서\n영\tB-PS\n희\tI-PS\n가\tO\n\n"


def test_a_line_before_a_sentence_is_a_comment(read):
    """Though it has as many cells as words."""
    assert (
        content(read("".join(map(KLUE.format, range(3)))))
        == [(["영", "희", "가"], ["B-PS", "I-PS", "O"])] * 3
    )
    assert content(read("##\tid\nw\tO\n\n" * 4)) == [(["w"], ["O"])] * 4
    assert content(read("##a\tid\nw\tO\n\n" + "x\tO\n\n" * 4))[0][0] == ["##a", "w"]
    assert content(read("#tag\tO\nw\tO\n\n" * 4))[0][0] == ["#tag", "w"]


@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_marks_separate_columns_where_there_are_no_blanks(mark, read):
    text = f'In{mark}O\nRome{mark}B-place\n\n"{mark}"{mark}O\nyes{mark}O\n'
    sentences = read(text)
    assert content(sentences) == [
        (["In", "Rome"], ["O", "B-place"]),
        ([mark, "yes"], ["O", "O"]),
    ]
    assert {sentence.separator for sentence in sentences} == {mark}

"""Tables with a word per row: sentences by columns, by blank lines, or none that can be meant."""

import io
import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.tasks.tagging.row_forms import TagColumns
from bert_tf.tasks.tagging.tagged_texts import read_tagged_texts

COLUMNS = TagColumns(text="text", tokens=None, tags=None, entities="entities")
TEXTS = ["ada met bob .", "it was so", "the old mill", "again .", "who knows that", "so it is"]


@pytest.fixture
def read(tmp_path):
    """Write a table and return the texts of its sentences, and the lines for the user."""

    def read_rows(header, rows, name="a.csv", ends="\n"):
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        (tmp_path / name).write_text("".join(line + ends for line in lines), newline="")
        shown = io.StringIO()
        found = read_tagged_texts(tmp_path / name, COLUMNS, console=Console(shown))
        return found.texts, shown.getvalue()

    return read_rows


def rows_of(texts, key):
    """Return a row per word, with the key that `key` makes of its sentence's number."""
    return [(*key(n), word, "O") for n, text in enumerate(texts) for word in text.split()]


@pytest.mark.parametrize(
    "document", ["doc_id", "doc", "Document", "document_id", "article_id", "file", "filename"]
)
def test_sentences_are_counted_in_documents(read, document):
    """udpipe and spacyr write them so, even if each document has only one."""
    header = f"{document},paragraph_id,sentence_id,tokens,tags"
    rows = rows_of(TEXTS, lambda n: (f"d{n}", 1, 1))
    texts, said = read(header, rows)
    assert texts == TEXTS
    assert f"words with one {document!r} and 'sentence_id' are a sentence" in said
    assert read(header, rows_of(TEXTS, lambda n: (n // 3, 1, n % 3)))[0] == TEXTS


def test_numbers_of_sentences_may_begin_again(read):
    texts, said = read("sentence,tokens,tags", rows_of(TEXTS, lambda n: (n % 3 + 1,)))
    assert texts == TEXTS
    assert "the numbers of 'sentence' begin again 1 time, each time with another" in said


def moved(rows, source, target):
    rows = list(rows)
    rows.insert(target, rows.pop(source))
    return rows


ROWS = rows_of(TEXTS, lambda n: (n,))


@given(st.integers(0, len(ROWS) - 1), st.integers(0, len(ROWS) - 1))
@example(4, 1)
@example(1, 6)
@example(0, 18)
def test_words_among_those_of_another_sentence_are_refused(tmp_path_factory, source, target):
    """A word that is moved between words of another sentence cuts that one, which comes back."""
    rows = moved(ROWS, source, target)
    runs = [key for key, _ in itertools.groupby(rows, key=lambda row: row[0])]
    path = tmp_path_factory.mktemp("rows") / "a.csv"
    lines = [",".join(map(str, row)) + "\n" for row in rows]
    path.write_text("sentence_id,tokens,tags\n" + "".join(lines))
    if len(runs) == len(set(runs)):
        assert len(read_tagged_texts(path, COLUMNS).texts) == len(TEXTS)
    else:
        with pytest.raises(InputError, match="sentence '[0-9]' comes back"):
            read_tagged_texts(path, COLUMNS)


def test_rows_in_random_order_are_refused(read):
    rows = ROWS[::2] + ROWS[1::2]
    with pytest.raises(InputError, match=r"a\.csv:11: sentence '0' comes back, which began at li"):
        read("sentence_id,tokens,tags", rows)
    with pytest.raises(InputError, match="comes back"):
        read("doc_id,sentence_id,tokens,tags", [("d", *row) for row in rows])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_blank_lines_end_sentences(read, name, ends):
    rows = rows_of(TEXTS, lambda n: ())
    lines = [[f"{word},{tag}"] for word, tag in rows]
    header = "tokens,tags"
    if name == "a.jsonl":
        lines = [[f'{{"tokens": "{word}", "tags": "{tag}"}}'] for word, tag in rows]
        header = ""
    places = list(itertools.accumulate(len(text.split()) for text in TEXTS))
    for place in reversed(places[:-1]):
        lines[place:place] = [[], []] if place % 2 else [[]]
    texts, said = read(header, lines, name, ends)
    assert texts == TEXTS
    assert "a word per row; blank lines end sentences" in said


def test_words_in_quotes_over_several_lines_are_no_blank_lines(read):
    others = [[word, "O"] for word in "fghijkl"]
    rows = [['"a\n\nb"', "O"], ["c", "O"], [], ['"d\r\ne"', "O"], *others]
    assert read("tokens,tags", rows)[0] == ["a\n\nb c", "d\r\ne f g h i j k l"]


def test_rows_without_a_word_end_sentences(read):
    """pandas writes blank lines so after it has read them."""
    rows = [["a", "O"], ["b", "O"], ["", ""], ["c", "O"], ["", "", ""][:2], ["d", "O"]]
    assert read("tokens,tags", rows)[0] == ["a b", "c", "d"]


def test_a_row_that_cannot_be_used_spoils_its_sentence(read, tmp_path):
    read("tokens,tags", [["a", "O"], ["b"], ["c", "O"], [], ["d", "O"], ["e", "O"]])
    found = read_tagged_texts(tmp_path / "a.csv", COLUMNS)
    assert found.texts == ["d e"]
    assert [(each.line, each.reason) for each in found.rejects] == [(2, "too few cells")]


PIECES = "[CLS] O\nan B-PER\n##na X\nmet O\n[SEP] O\n\nin O\nli B-LOC\n##ma X\n##s X\n"


def test_pieces_of_words_are_joined(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(PIECES)
    shown = io.StringIO()
    found = read_tagged_texts(path, COLUMNS, console=Console(shown))
    assert found.texts == ["anna met", "in limas"]
    assert found.tags == ["B-PER", "O", "O", "B-LOC"]
    assert found.mark_lines == [2, 4, 7, 8]
    assert "3 of 9 words begin with '##'" in shown.getvalue()


@pytest.mark.parametrize(
    "content",
    ["##na X\nli B-LOC\n\nat O\n\n" * 4, "li O\n## X\n\n" * 4, "li O\n" * 999 + "##ma O\n"],
)
def test_other_words_with_such_marks_stay(tmp_path, content):
    path = tmp_path / "a.conll"
    path.write_text(content)
    found = read_tagged_texts(path, COLUMNS)
    assert len(found.tags) == sum(map(bool, content.split("\n")))

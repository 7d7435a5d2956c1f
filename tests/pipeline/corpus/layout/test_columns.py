"""Places of text in lines tell rows of tables, terms, headings, items and first lines."""

import random

import numpy as np
import pytest

from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.layout.columns import Place, measure_columns
from pipeline.corpus.raw_block import ONE_DOCUMENT, RawBlock, Texts, lines_of
from pipeline.corpus.readers.splits import Chunk
from pipeline.corpus.readers.text import TextReader

OPTIONS = """\
       -f, --force     Close the bridge without a question. Nobody is
                       asked.
       -w, --weeks N   The number of weeks.
       -q              Be quiet."""


def sentences(text: str, layout: str = "paragraphs") -> list[str]:
    raw = TextReader(layout=layout).read("a.txt", Chunk(0, 0, 1, text.encode()))
    return make_block(raw, DocumentRules()).sentences.to_pylist()


def block_of_lines(text: str) -> DocumentBlock:
    raw = RawBlock(source="a", index=0, texts=lines_of(text.encode(), 1), layout=ONE_DOCUMENT)
    return make_block(raw, DocumentRules())


def places(text: str) -> list[int]:
    lines = lines_of(text.encode(), 1)
    return measure_columns(lines.data, lines.starts, lines.stops).places.tolist()


def test_indents_count_columns():
    lines = lines_of("a\n  b\n\tc\n \td\n\u3000e\n\u00a0f\n\n".encode(), 1)
    columns = measure_columns(lines.data, lines.starts, lines.stops)
    assert columns.indents.tolist() == [0, 2, 8, 8, 2, 1, 0]


def test_cells_go_on_below_their_column():
    assert places(OPTIONS) == [Place.ROW, Place.CELL, Place.ROW, Place.ROW]
    assert sentences(f"OPTIONS\n{OPTIONS}\n") == [
        "OPTIONS",
        "-f, --force Close the bridge without a question.",
        "Nobody is asked.",
        "-w, --weeks N The number of weeks.",
        "-q Be quiet.",
    ]


@pytest.mark.parametrize("layout", ["paragraphs", "articles"])
def test_rows_of_tables_stay_apart(layout):
    table = (
        "=====  ======\nA      B\n=====  ======\nFalse  False\nTrue   False\nNever  Always\n"
        "=====  ======\n"
    )
    assert sentences(table, layout) == ["A B", "False False", "True False", "Never Always"]


def test_two_blanks_after_sentences_are_no_columns():
    text = "It rained.  Nobody came.  The old men\nwent home.  Nobody came.  The mayor was\nsad.\n"
    assert places(text) == [Place.ANY] * 3


def justified(words: list[str], width: int) -> str:
    """Return lines of a width, as `man` fills them: blanks are doubled from either side."""
    lines = [[words[0]]]
    for word in words[1:]:
        if len(" ".join([*lines[-1], word])) <= width:
            lines[-1].append(word)
        else:
            lines.append([word])
    filled = []
    for number, line in enumerate(lines):
        gaps = [" "] * (len(line) - 1)
        for extra in range(width - len(" ".join(line)) if gaps else 0):
            place = extra % len(gaps)
            gaps[place if number % 2 else len(gaps) - 1 - place] += " "
        filled.append("".join(word + gap for word, gap in zip(line, [*gaps, ""], strict=True)))
    return "\n".join(filled)


@pytest.mark.parametrize("width", [60, 65, 72])
def test_lines_of_justified_text_are_no_rows(width):
    vocabulary = ["a", "of", "the", "was", "bridge", "mayor", "nobody", "harbors"]
    found = np.array(places(justified(random.Random(width).choices(vocabulary, k=4000), width)))
    assert np.mean(found != Place.ANY) <= 0.005


def test_lines_of_other_texts_are_no_rows_above():
    data = lines_of(b"A    b\nC    d\n     e", 1)
    columns = measure_columns(data.data, data.starts, data.stops, np.arange(3))
    assert columns.places.tolist() == [Place.ANY] * 3


def test_a_glossary_without_blank_lines_is_read_by_its_terms():
    terms = ["anchor", "bollard", "capstan", "dock", "ebb"]
    text = "".join(
        f"{term:<12}holds a ship where it is, even if\n{'':12}the sea is rough. It is of iron.\n"
        for term in terms
    )
    expected = [
        f"{term} holds a ship where it is, even if the sea is rough. It is of iron."
        for term in terms
    ]
    block = block_of_lines(text)
    assert block.num_lines == len(terms)
    assert [" ".join(block.sentences.to_pylist()[i : i + 2]) for i in range(0, 10, 2)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NAME\n       bridge - close the bridge\n", ["NAME", "bridge - close the bridge"]),
        (
            "anchor\n   a heavy thing.\nbuoy\n   a light thing.\n",
            ["anchor", "a heavy thing.", "buoy", "a light thing."],
        ),
        (
            ":param weeks: how many weeks.\n:returns: nothing.\n",
            [":param weeks: how many weeks.", ":returns: nothing."],
        ),
        (".. [1] None came.\n.. _link: https://a.b\n", [".. [1] None came.", ".. _link: https://a.b"]),
        (
            "1. Take water\n2. Boil it for an hour\n3. Wait\n",
            ["1. Take water", "2. Boil it for an hour", "3. Wait"],
        ),
        ("From: Ambrose\nTo: Hester of A\n", ["From: Ambrose", "To: Hester of A"]),
        ("Soup\n2 cups of tea\n1 egg, boiled\n", ["Soup", "2 cups of tea", "1 egg, boiled"]),
        ("| A | B |\n| 1 | 2 |\n", ["| A | B |", "| 1 | 2 |"]),
        ("```python\nx = 1\n```\n", ["x = 1"]),
    ],
)  # fmt: skip
def test_structure_within_a_block(text, expected):
    assert sentences(text) == expected


def test_wrapped_prose_is_joined_whatever_its_lines_begin_with():
    text = (
        "The keeper of the northern lighthouse wrote about the strange green light in\n"
        "1850. |bar| and :set were not known then, and nobody in the town believed\n"
        "A. Smith, who had seen it.\n"
    )
    assert len(sentences(text)) == 2


@pytest.mark.parametrize("begin", ["@anna for", ":smile: for"])
def test_names_and_smileys_within_a_sentence_begin_no_paragraph(begin):
    text = f"They thanked many who came that night, in particular\n{begin} the green light.\n"
    assert sentences(text) == [text.strip().replace("\n", " ")]
    assert len(sentences(f"It returns all of the weeks.\n{begin} the green light.\n")) == 2


def test_first_lines_of_a_book_may_end_with_a_sentence():
    first = "    Prudence walked across the bridge to the market and came back.\n"
    rest = "Nobody had seen her there, but all of them knew where she had been\nthe day before.\n"
    block = block_of_lines((first + rest) * 6)
    assert block.num_lines == 6
    assert block.sentences.to_pylist()[:2] == [
        "Prudence walked across the bridge to the market and came back.",
        "Nobody had seen her there, but all of them knew where she had been the day before.",
    ]


@pytest.mark.parametrize(
    "rule", ["* * *", "--", "———", "⁂", ".....", "§§§", "@@@@", "%", "┌──┬──┐", "- - -"]
)
def test_lines_without_text_are_drawn(rule):
    block = block_of_lines(f"One came.\n{rule}\nTwo went.\n")
    assert block.sentences.to_pylist() == ["One came.", "Two went."]
    assert block.evidence.dropped_lines == {"drawn line": 1}


@pytest.mark.parametrize("line", ["...", "?!", "-", "—", "$$$", "1", "😀😀"])
def test_lines_of_few_marks_are_text(line):
    assert block_of_lines(f"One came.\n{line}\nTwo went.\n").num_lines == 3


def test_html_has_no_columns():
    raw = RawBlock(source="a", index=0, texts=Texts.of_rows([b"<pre>A   b\n    c</pre>"], [1]))
    assert make_block(raw, DocumentRules(cleaning=("html", "whitespace"))).num_lines == 2


def test_text_that_is_broken_by_sense_is_not_cut_before_names_and_numbers():
    text = (
        "The report was sent to\n12 members of the council who lived in the other part of town.\n"
        "Paris was of another kind, and that\nI should not worry about it was all that\n"
        "Ambrose said when he came back from the northern lighthouse.\n"
    )
    assert len(sentences(text)) == 2
    assert len(sentences(text, "articles")) == 2

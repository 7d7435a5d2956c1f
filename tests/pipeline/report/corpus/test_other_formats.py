import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.sections import VocabConfig
from pipeline.report.corpus.other_formats import signs_of_other_formats

PROSE = [
    "The river runs north of the city.",
    "Nobody had seen it so high in forty years, and nobody says why.",
    "It was late.",
    "On Monday 3:45 p.m. the bridge was closed to <100 cars> at most.",
    "Costs are R&D; 5 > 4, and a tab\tis rare.",
    "From: here to there takes long.",
    "She said: “go”.",
]


def _signs(*lines, cells=False, **config):
    text = {"a.txt": "\n".join(lines).encode()}
    heads, cells = ({}, text) if cells else (text, {})
    return signs_of_other_formats(heads, cells, VocabConfig(input=("a.txt",), output="v", **config))


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("{n}\tThe river runs {words}.", "100% of the lines hold 1 tab, like a table"),
        ("{n}\t{words}\tlabel", "hold 2 tabs, like a table"),
        ("river B-LOC", "hold 2 words, like a word and its tags"),
        ("EU NNP B-NP B-ORG", "hold 4 words, like a word and its tags"),
        ("<p>The river runs {words}.</p>", "tags such as <p>, which"),
        ("The river <br />{words}.", "tags such as <br />, which"),
        ("<seg id={n}>The river runs {words}</seg>", "tags such as </seg>, which are no HTML"),
        (
            "Fish &amp; chips {words}",
            "HTML entities such as &amp;; unescape them with --set vocab.cleaning=[html,",
        ),
        ("The end.\\nA new line of {words}", "written as two characters (\\n)"),
        ("From: Ann <a@b.org>, {words}", "headers of mail such as 'From: Ann <a@'"),
        (" = River {n} = \n{words} it runs", "50% of the lines hold headings of WikiText"),
        ("00:0{n}:01,000 --> 00:0{n}:02,000\nriver {words}", "50% of the lines hold time stamps"),
        ("Fl&uuml;sse {words}", "HTML entities such as &uuml;"),
        ("The/DT river/NN runs/VBZ {words}", "words with tags such as 'The/DT river/NN"),
        ("> > The river runs {words}.", "marks of quotes ('> > The'), as in mail"),
        ("river", "hold a single word such as 'river'"),
        ("The river runs {words} and no-\nbody knows why it does.", "cut at the line end (no-)"),
        ("\\section{{River}}\nThe river runs {words}", "commands of LaTeX such as \\section"),
        ("WARC-Type: conversion\nThe river runs {words}", "headers of WARC records"),
        ("It{garbled}s {words}", "garbled characters such as â€™"),
        ("Ð\x9fÑ\x80Ð¸Ð²ÐµÑ\x82 {words}", "garbled characters such as Ð"),
        ("Ïðèâåò, ìèð {words}", "garbled characters such as Ïðèâåò"),
        ("The river ran\ufffd {words}", "marks in the place of letters (\ufffd)"),
        ("{words}, ???? ?????.", "marks in the place of letters (???? ?????)"),
        ("The river ran f=C3=BCr {words}", "quoted-printable mail writes them (=C3=BC)"),
        ("** River {n}\n{words}", "stars before headings or items ('**'), as in Org"),
        *(
            (f"The river\n{number}\nruns {{words}}", f"33% of the lines hold nothing but a {shown}")
            for number, shown in (
                ("{n}", "number ('0')"),
                ("- {n} -", "number ('- 0 -')"),
                ("\fPage {n} of 9", "number ('Page 0 of 9')"),
                ("— {n} —", "number ('— 0 —')"),
            )
        ),
        *(
            (f"{before}the river runs {{words}}", "times and names before messages ('")
            for before in (
                "[10:2{n}] <ann> ",
                "10:2{n} Ann Lee: ",
                "1/24/21, 10:2{n} PM - Ann: ",
                "\u200e[2021-01-24 10:2{n}:00] Александр Иванович: ",
            )
        ),
        ("__label__2 The river runs {words}.", "labels of fastText ('__label__2')"),
        ("L{n} +++$+++ u2 +++$+++ ANN +++$+++ {words}", "fields with +++$+++ between them"),
        (
            "0:0{n}\nThe river runs {words}",
            "50% of the lines hold lines that are a time or two numbers ('0:00')",
        ),
        ("[01:2{n}]\nThe river runs {words}", "a time or two numbers ('[01:20]')"),
        (
            "Dialogue: 0,0:00:0{n}.00,0:00:05.00,Default,,0,0,0,,{words}",
            "time stamps of subtitles ('Dialogue: ",
        ),
    ],
)
def test_text_that_is_not_prose_is_warned_about(line, sign):
    garbled = "’".encode().decode("cp1252")
    lines = [
        line.format(n=n, words="north " * (n + 1), garbled=garbled) if "{" in line else line
        for n in range(9)
    ]
    (warning,) = _signs(*lines)
    assert warning.startswith("a.txt: ")
    assert sign in warning


def test_prose_has_no_signs():
    assert _signs(*PROSE * 3) == []
    assert _signs("<p>one</p>") != []
    assert (
        _signs(*["<Ann> The river is at <https://a.org/river>.", "Press <Enter>, then <F1>."] * 5)
        == []
    )
    assert _signs(*PROSE * 3, cells=True) == []
    assert _signs("Tags <br> in one line of many.", *PROSE * 6) == []
    unusual = ("第××××××号", "Ääääääääh!", "*** *** ***", "Was??? ??? Nein!", "x=AB=CD", "- 5")
    assert _signs(*[line for line in unusual for _ in range(5)]) == []
    assert (
        _signs("文字の列です。", "もう一つの行。", "三つ目", "四つ目の行です。", "五つ目", "六")
        == []
    )


def test_a_line_of_names_makes_a_table():
    (warning,) = _signs("id,text", *(f'{n},"The river, {n * "so "}runs."' for n in range(9)))
    assert "100% of the lines hold fields of a table (id,text); give it the ending .csv" in warning
    assert _signs("Hello,world", *PROSE) == []


def test_rows_of_json_are_refused():
    lines = [f'{{"id": {n}, "text": "The river runs."}}' for n in range(9)]
    with pytest.raises(
        UsageError, match=r"a\.txt: 100% of the lines hold JSON objects.*vocab\.format=jsonl"
    ):
        _signs(*lines)
    assert _signs(*lines, cells=True) == []
    (warning,) = _signs(*lines, format="text")
    assert "hold JSON objects" in warning


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": 1, "text": "It runs."}, {"id": 2, "text": "It rains."}]',
        '[\n  {\n    "text": "It runs."\n  },\n  {\n    "text": "It rains."\n  }\n]',
        '["The river runs.",\n"It rains."]',
        '{\n  "data": [\n    {"text": "It runs."}\n  ]\n}',
    ],
)
def test_values_of_json_are_refused(text):
    with pytest.raises(UsageError, match=r"JSON value over several lines; write an object per"):
        _signs(*text.split("\n"))
    assert len(_signs(*text.split("\n"), format="text")) == 1


def test_front_matter_and_lines_between_texts_are_warned_about():
    front = ["---", "title: The river", "tags:", "  - north", "date: 2031-03-01", "---"]
    (warning,) = _signs(*front, *PROSE)
    assert "hold front matter (title:); remove it first" in warning
    front = ["+++", 'title = "The river"', "[params]", "  north = true", "", "+++"]
    (warning,) = _signs(*front, *PROSE)
    assert "hold front matter (title); remove it first" in warning
    for mark in ("%", "%%", "-----", "==========", "* * *", "--", "⁂", "[SEP]", "<doc>", "</s>"):
        warning = _signs(*[*PROSE, mark] * 12)[-1]
        assert f"hold nothing but {mark}, as between texts" in warning
    for mark in ("...", "}", '"', "<", ":-)", ">>", "/**", "##", "~~~", "[MUSIC]", "{{x}}"):
        assert _signs(*[*PROSE, mark] * 12) == []
    for mark in ("* * *", "---", "-----"):
        assert _signs(*[*PROSE, "", mark, ""] * 12) == []
    assert _signs(*["The river", "---------", *PROSE] * 12) == []
    assert _signs("---", *PROSE, "---") == []


def test_texts_in_the_marks_of_a_language_are_warned_about():
    (warning,) = _signs(*(f'"The \\u201criver\\u201d runs {n} miles.",' for n in range(9)))
    assert "nothing but a text in quotation marks" in warning
    for line in ("{'text': 'The river runs.'}", "['The river runs.', \"It's late.\"]"):
        with pytest.raises(UsageError, match="lists or objects of Python"):
            _signs(*[line] * 9)
    assert _signs(*['"The river," he said, "runs."'] * 9) == []


def test_cells_halves_gaps_and_numbers_of_lines_are_warned_about():
    def first(*lines: str) -> str:
        (warning,) = _signs(*lines)
        return warning

    texts = [f"The river runs {number} miles {number * 'or '}so." for number in range(3, 12)]
    assert "cells of a table" in first(*(f'{n},"{text}",pos' for n, text in enumerate(texts)))
    assert "two texts with |||" in first(*(f"{text} ||| Der Fluss." for text in texts))
    assert "as between columns" in first(*(f"{text:<70}Nobody came." for text in texts))
    numbers = first(*(f"{n:4d}  {text}" for n, text in enumerate(texts, 7)))
    assert "hold their numbers (7, 15)" in numbers
    assert _signs(*(f"{n}. {text}" for n, text in enumerate(texts))) == []


def test_markup_that_is_cleaned_is_no_fault():
    lines = ["<p>The river &amp; its banks</p>", "<p>It runs north</p>"] * 5
    assert len(_signs(*lines)) == 2
    assert _signs(*lines, cleaning=("html", "whitespace")) == []


def test_the_worst_file_stands_for_all():
    html, text = (
        b"<p>a river</p>\n<p>it runs north</p>\n" * 9,
        b"The city is far.\nIt rains in the city.\n" * 9,
    )
    heads = {"a.txt": html + text, "b.txt": html, "c.txt": text}
    (warning,) = signs_of_other_formats(heads, {}, VocabConfig(input=("a.txt",), output="v"))
    assert warning.startswith("b.txt (and 1 other file): 100% of the lines hold tags")


def test_tags_in_the_text_of_web_pages_are_text():
    cells = {"a.html": b"The type is <b>T</b>.\n" * 9}
    config = VocabConfig(input=("a.html",), output="v")
    assert signs_of_other_formats({}, cells, config) == []
    assert signs_of_other_formats({}, {"a.csv": cells["a.html"]}, config)

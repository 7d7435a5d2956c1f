"""Raw texts to documents: each cleaning step alone, and nothing lost uncounted."""

import itertools
import json
import re
import unicodedata

import numpy as np
import pytest
from behavior.timing import superlinear_growth
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.corpus.documents import DocumentRules, make_block, measure_documents
from pipeline.corpus.raw_block import (
    ONE_DOCUMENT,
    SENTENCE_LINES,
    RawBlock,
    Texts,
    lines_of,
)


def rules_for(**values):
    config = build_section(VocabConfig, {"input": ("x",), "output": "y", **values})
    return DocumentRules.from_config(config)


def texts_of(documents):
    raw = [text if isinstance(text, bytes) else text.encode() for text in documents]
    bounds = np.cumsum([0, *map(len, raw)])
    return Texts(
        data=np.frombuffer(b"".join(raw), np.uint8),
        starts=bounds[:-1],
        stops=bounds[1:],
        lines=np.arange(len(raw)) + 1,
    )


def block_of_rows(documents, **values):
    raw = RawBlock(source="x", index=0, texts=texts_of(documents))
    return make_block(raw, rules_for(**values))


def block_of_lines(lines, layout):
    return RawBlock(source="x", index=0, texts=lines, layout=layout)


def lists_of(block):
    """Documents as lists of lines, lists of sentences."""
    sentences, lines = block.sentences.to_pylist(), block.line_offsets.tolist()
    per_line = [sentences[begin:end] for begin, end in itertools.pairwise(lines)]
    bounds = block.lines_of_documents.tolist()
    return [per_line[begin:end] for begin, end in itertools.pairwise(bounds)]


def clean_line(text, *steps):
    block = block_of_rows([text], cleaning=steps, sentence_splitter="none")
    return [sentence for document in lists_of(block) for (sentence,) in document]


def test_each_step_does_its_work_alone():
    text = "  e\u0301\x07 &eacute; \u3000<b>x</b>\ufeff "
    assert clean_line(text) == ["e\u0301\x07 &eacute; \u3000<b>x</b>\ufeff"]
    assert clean_line(text, "nfc") == ["é\x07 &eacute; \u3000<b>x</b>\ufeff"]
    assert clean_line(text, "controls") == ["e\u0301  &eacute; \u3000<b>x</b>"]
    assert clean_line(text, "whitespace") == ["e\u0301\x07 &eacute; <b>x</b>\ufeff"]
    assert clean_line(text, "html") == ["e\u0301\x07 é \u3000x\ufeff"]
    assert clean_line(text, "html", "nfc", "whitespace", "controls") == ["é é x"]


def test_unknown_steps_are_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="cleaning: expected one of html, .* mean 'whitespace'"):
        rules_for(cleaning=["whitespaces"])


@given(
    st.text(st.sampled_from("ab \t\u3000\x00\x1f\ufeffe\u0301\u00a0")),
    st.sets(st.sampled_from(["nfc", "controls", "whitespace"])),
)
def test_steps_are_what_python_says(text, steps):
    expected = text
    if "controls" in steps:
        expected = expected.replace("\ufeff", "")
        expected = re.sub(
            r"[\x00\x1f]+", lambda run: " " if "\x00" in run.group() else run.group(), expected
        )
    lines = clean_line(text, *steps)
    if "whitespace" in steps:
        expected = " ".join(re.split(r"[ \t\u3000\u00a0\x1f]+", expected)).strip()
    else:
        if "\x00" in text and "controls" in steps:
            return  # where white space stays, several controls between it are one space or more
        expected = expected.strip()
    if "nfc" in steps:
        expected = unicodedata.normalize("NFC", expected)
    assert lines == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("<p>One.</p><p>T<b>w</b>o</p>", ["One.", "Two"]),
        ("a<br/>b<BR>c", ["a", "b", "c"]),
        ("<a href=\"x>y\"\ntitle='a'>link</a> text", ["link text"]),
        ("x<!-- gone\n<p> --> y", ["x y"]),
        ("<script>if (a<b) {}</script>code <style>p{}</style>", ["code"]),
        ("before <script>never closed", ["before"]),
        (
            "a < b, a <b, 1<2, x <3 and <john@x.org> in List<String>",
            ["a < b, a <b, 1<2, x <3 and <john@x.org> in List<String>"],
        ),
        (
            "AT&T &amp; &lt;b&gt; &#65;&#x42; ?a=1&copy=2 &nosuch; &nbsp;x",
            ["AT&T & <b> AB ?a=1&copy=2 &nosuch; x"],
        ),
        ("&amp;amp;", ["&amp;"]),
        ("<!DOCTYPE html><html><head><title>T</title></head><body>B</body></html>", ["T", "B"]),
    ],
)
def test_markup_goes_and_its_text_stays(text, lines):
    assert clean_line(text, "html", "whitespace") == lines


def test_markup_in_every_layout():
    lines = lines_of(b"<p>One.\n<br>\n\n<i>Two</i> x.\n\xff<p>\n", 1)
    block = make_block(block_of_lines(lines, SENTENCE_LINES), rules_for(cleaning=["html"]))
    assert lists_of(block) == [[["One."]], [["Two x."]]]
    assert block.evidence.dropped_lines == {"only mark-up": 1}
    assert block.document_lines.tolist() == [1, 4]
    assert [reject.line for reject in block.evidence.rejects] == [5]
    lines = lines_of(b"<p>One\n\xff\n<!-- a\n\n b -->Two. Three.\n", 1)
    block = make_block(block_of_lines(lines, ONE_DOCUMENT), rules_for(cleaning=["html"]))
    assert lists_of(block) == [[["One"], ["Two.", "Three."]]]
    assert [reject.line for reject in block.evidence.rejects] == [2]
    block = block_of_rows([b"<p>a\xff", "<p>b", "<hr>"], cleaning=["html"])
    assert lists_of(block) == [[["b"]]]
    assert (block.evidence.dropped, block.document_lines.tolist()) == ({"empty document": 1}, [2])
    assert block.evidence.rejects[0].detail == "at byte 5"


def test_a_line_end_in_a_reference_ends_no_sentence_of_a_line():
    lines = lines_of("e\u0301 one&#10;two &NewLine;x\nn\u0303 three&#x2028;four&#0;\n".encode(), 1)
    rules = rules_for(cleaning=["html", "nfc"])
    block = make_block(block_of_lines(lines, SENTENCE_LINES), rules)
    assert lists_of(block) == [[["é one two  x"], ["ñ three four\ufffd"]]]
    assert clean_line("a&#10;b&#13;&#10;c", "html", "nfc") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("part", "stays"),
    [("<a '", True), ("<!--", False), ("<script", False), ("<p ", True), ("&#x", True)],
)
def test_unclosed_markup_takes_time_with_the_text_not_its_square(part, stays):
    """Looking for each end anew takes billions of steps; one way through the text, a moment."""

    def check(text):
        assert clean_line(text, "html") == ([text.strip()] if stays else [])

    assert superlinear_growth(check, part.__mul__, size=30_000) is None


BOILERPLATE = [
    "Please enable JavaScript to view this page.",
    "JavaScript must be enabled to use this site",
    "We use cookies. Read our privacy policy.",
    "© 2019 Example Ltd. All rights reserved.",
    "Copyright (c) 1999-2004 by Somebody",
    "Home | News | Contact",
    "Start » Shop » Shoes",
    "Read more...",
    "→ Read more »",
    "Sign in",
    "Log in / Register",
    "Skip to main content",
    "3 likes",
    "1.2k views",
    "Items in cart: 0",
    "Share on Facebook",
]
PROSE = [
    "He used copyright law against them.",
    "The baker sold cookies, and the use of butter was allowed.",
    "I read more in 1999 than ever before, she said.",
    "It costs 3 | 4 dollars.",
    "Sign in the window: we are closed. Nobody came.",
    "JavaScript is a language. Enable JavaScript to try it. " * 10,
    "JavaScript error when hitting Cancel in the dialog",
    "He had 3 likes and dislikes to tell.",
    "The subscription ended in May.",
]


@pytest.mark.parametrize("line", BOILERPLATE)
def test_boilerplate_goes(line):
    assert clean_line(f"Text.\n{line}\nMore text.", "boilerplate", "whitespace") == [
        "Text.",
        "More text.",
    ]


@pytest.mark.parametrize("line", PROSE)
def test_prose_stays(line):
    assert clean_line(line, "boilerplate", "whitespace") == [line.strip()]


@given(st.text(st.sampled_from("aé1 .,字\u0301")))
def test_documents_are_measured_as_python_does(text):
    clean = " ".join(text.split())
    block = block_of_rows([clean], cleaning=["whitespace"], sentence_splitter="none")
    if not clean:
        assert block.num_documents == 0
        return
    sizes = measure_documents(block)
    assert sizes["too few characters"].tolist() == [len(clean)]
    assert sizes["too few words"].tolist() == [len(clean.split())]
    visible = clean.replace(" ", "")
    letters = sum(unicodedata.category(character)[0] in "LM" for character in visible)
    assert sizes["too few letters"].tolist() == [letters / len(visible)]


def test_short_documents_and_those_of_few_letters_go_under_the_first_reason():
    documents = ["abc def ghi", "ab", "abcdefghijk", "1 2 3 4 5 6 a", "one two three\nfour. Five"]
    block = block_of_rows(
        documents, min_document_characters=5, min_document_words=3, min_letter_fraction=0.5
    )
    assert lists_of(block) == [[["abc def ghi"]], [["one two three"], ["four.", "Five"]]]
    assert block.evidence.dropped == {
        "too few characters": 1,
        "too few words": 1,
        "too few letters": 1,
    }
    assert block.document_lines.tolist() == [1, 5]


ROWS = st.one_of(
    st.sampled_from(
        [b"", b" ", b"Good text here. More.", b"bad \xff", b"Sign in", b"<p>", b"1 2 3"]
    ),
    st.text(st.sampled_from("ab1.\n <>&")).map(str.encode),
)
STEPS = st.sets(st.sampled_from(["html", "controls", "whitespace", "nfc", "boilerplate"]))


@given(st.lists(ROWS, max_size=15), STEPS, st.sampled_from(["none", "rules"]))
def test_rows_in_are_documents_kept_dropped_and_rejected(rows, steps, splitter):
    block = block_of_rows(
        rows,
        cleaning=sorted(steps),
        sentence_splitter=splitter,
        min_document_words=2,
        min_letter_fraction=0.4,
    )
    dropped = sum(block.evidence.dropped.values())
    assert len(rows) == block.num_documents + dropped + len(block.evidence.rejects)
    assert block.document_offsets[-1] == block.line_offsets[-1] == len(block.sentences)
    assert len(block.document_lines) == block.num_documents
    assert (np.diff(block.document_offsets) > 0).all() and (np.diff(block.line_offsets) > 0).all()


@given(st.lists(ROWS.filter(lambda row: b"\n" not in row), max_size=15), STEPS)
def test_lines_in_are_sentences_dropped_and_rejected(rows, steps):
    data = b"".join(row + b"\n" for row in rows)
    raw = block_of_lines(lines_of(data, 1), SENTENCE_LINES)
    block = make_block(raw, rules_for(cleaning=sorted(steps)))
    lines = sum(1 for row in rows if row.strip())
    dropped = sum(block.evidence.dropped_lines.values())
    assert lines == len(block.sentences) + dropped + len(block.evidence.rejects)


def test_defaults_change_clean_text_in_nothing():
    text = "A clean line, with <b>mark-up</b> & signs.\nSign in\n© 2019"
    block = block_of_rows([text])
    assert json.dumps(lists_of(block)) == json.dumps([[[line] for line in text.split("\n")]])

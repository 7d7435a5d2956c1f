"""Lines of a text that are one sentence or one paragraph, and lines that are not."""

import itertools
import json

import numpy as np
import pytest
from behavior.readers import check_reader, read_corpus
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.layout.east_asian import remove_breaks


def test_marks_at_the_end_of_texts_separate_documents(tmp_path):
    marked = (
        b"<|endoftext|>One is. Two is.\nThree is.<|endoftext|>\n\xff is.\n\n<|endoftext|>\n"
        b"Five is.\n<|endoftext|>"
    )
    found = check_reader(tmp_path, "a.txt", marked + b"\n")
    assert found.documents == [["One is.", "Two is.", "Three is."], ["Five is."]]
    assert [(line, reason) for line, reason, _ in found.rejects] == [(3, "invalid UTF-8")]
    assert found.dropped == {"empty document": 1}


def test_hard_wrapped_lines_are_joined_and_other_lines_are_not(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(
        "CHAPTER ONE\n"
        "The old man sat on a bench beside the river and\n"
        "watched the slow boats go by until the evening\n"
        "came. He said nothing at all, though many people\n"
        "greeted him.\n"
        "Then he left.\n"
    )
    assert read_corpus(path).documents == [
        [
            "CHAPTER ONE",
            "The old man sat on a bench beside the river and watched the slow boats go by until "
            "the evening came.",
            "He said nothing at all, though many people greeted him.",
            "Then he left.",
        ]
    ]


WRAPPED_JAPANESE = [
    "むかしむかしあるところにおじいさんとおばあさんがなかよくくらしてい",
    "ました。おじいさんは山へしばかりに、おばあさんは川へせんたくに行き",
    "ました。すると大きな桃がどんぶらこどんぶらこと流れてきました。「Ｏ",
    "Ｋ」とおばあさんは言いました。これはBERTで読める長い長いお話のはじ",
    "まりです。",
]


@pytest.mark.parametrize("ending", ["\n", "\r\n", " \n"])
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("a.jsonl", {}),
        ("a.jsonl", {"curation": ("gopher",)}),
        *(("a.txt", {"text_layout": layout}) for layout in ("file", "paragraphs", "articles")),
    ],
)
def test_line_breaks_of_japanese_text_are_no_blanks(tmp_path, name, keys, ending):
    path = tmp_path / name
    text = ending.join(WRAPPED_JAPANESE)
    path.write_bytes((json.dumps({"text": text}) if name == "a.jsonl" else text).encode())
    (document,) = read_corpus(path, **keys).documents
    assert "".join(document) == "".join(WRAPPED_JAPANESE)


@pytest.mark.parametrize("curation", [(), ("gopher",)])
def test_line_breaks_of_later_paragraphs_are_in_their_places(tmp_path, curation):
    path = tmp_path / "a.jsonl"
    text = "\n \n\n".join(["\n".join(WRAPPED_JAPANESE)] * 3)
    path.write_text(json.dumps({"text": text}))
    (document,) = read_corpus(path, curation=curation).documents
    assert "".join(document) == "".join(WRAPPED_JAPANESE * 3)


EAST_ASIAN = "かア漢。！"


@given(
    st.lists(st.text("aé한ㅋभ" + EAST_ASIAN, min_size=1), min_size=1),
    st.sampled_from([" ", "\r ", " \t "]),
)
def test_breaks_are_removed_between_characters_of_chinese_and_japanese(lines, mark):
    data = np.frombuffer(mark.join(lines).encode(), np.uint8)
    sizes = np.array([len(line.encode()) for line in lines])
    stops = np.cumsum(sizes + len(mark)) - len(mark)
    breaks = (stops[:-1, np.newaxis] + np.arange(len(mark))).ravel()  # several in a run of blanks
    joined, starts, stops = remove_breaks(data, breaks, stops - sizes, stops)
    expected = lines[0]
    for before, line in itertools.pairwise(lines):
        is_between = before[-1] in EAST_ASIAN and line[0] in EAST_ASIAN
        expected += line if is_between else mark + line
    assert joined.tobytes().decode() == expected
    found = zip(starts, stops, strict=True)
    assert [joined[start:stop].tobytes().decode() for start, stop in found] == lines


def test_the_place_of_a_reject_is_that_in_the_file(tmp_path):
    lines = [line.encode() for line in WRAPPED_JAPANESE]
    lines[2] = lines[2][:9] + b"\xff" + lines[2][9:]
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n".join(lines))
    found = read_corpus(path, text_layout="paragraphs")
    place = path.read_bytes().index(b"\xff") + 1
    assert [detail for *_, detail in found.rejects] == [f"at byte {place:,}"]


def test_roman_items_are_paragraphs_of_their_own(tmp_path):
    path = tmp_path / "law.txt"
    path.write_text(
        "i. The tenant pays the rent on the first day of each month. Late\n"
        "rent costs more.\n"
        "ii. He keeps the garden in good order. No trees may be cut by the\n"
        "tenant.\n"
        "xxviii) the key of the old house that stands beside the river goes\n"
        "to the owner.\n"
    )
    (document,) = read_corpus(path, text_layout="paragraphs").documents
    assert [text.split()[0] for text in document if text[0] in "ivx"] == ["i.", "ii.", "xxviii)"]


RAGGED = """\
The old man sat on a bench beside the river
and watched the slow boats go by until the evening came. He met Ann
Lee there. He said nothing at all, though
many people greeted him as they went
to the market."""


@pytest.mark.parametrize(
    "lines",
    [
        RAGGED,
        f"See http://example.com/{200 * 'a'}.\n{RAGGED}",
        f"Boats\n\nHe went home. He went\nout again.\n\n{RAGGED}",
    ],
)
def test_sentences_go_on_across_line_ends_whatever_the_longest_line_is(lines, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": lines}))
    (document,) = read_corpus(path).documents
    assert document[-2:] == [
        "He met Ann Lee there.",
        "He said nothing at all, though many people greeted him as they went to the market.",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["i was there and nobody else came, what a pity", "it was a long day for all of us, too"],
        ["Pancakes with butter", "two eggs", "some flour", "Milk"],
        ["Dingoes help to find toads", "She says that they like it outside.", "That is all."],
        ["第一章", "他从学校回来以后就坐在窗前看书", "外面下着雨", "母亲在厨房里做饭"],
    ],
)
def test_lines_that_are_no_sentences_are_not_joined(lines, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "\n".join(lines)}))
    assert read_corpus(path).documents == [lines]


def test_chinese_is_joined_at_its_margin_in_columns(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [
        "他从学校回来以后就坐在 Paris 的窗前看书外面下",
        "着雨母亲在厨房里做饭弟弟在院子里玩耍他想起了",
    ]
    lines += ["去年夏天的事情那时候他们一家人住在海边每天都", "很快乐。"]
    path.write_text(json.dumps({"text": "\n".join(lines)}))
    assert read_corpus(path).documents == [["".join(lines)]]


@pytest.mark.parametrize("layout", ["file", "paragraphs", "articles"])
def test_items_of_lists_are_paragraphs_of_their_own(layout, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(
        "Things that we need for the trip to the north,\n"
        "which will take the whole of the week:\n"
        "* the map that lies on the table in the old hall\n"
        "* a lamp, since nobody knows how long the night\n"
        "  will be\n"
        "- Warm clothes and the boots that Ann Lee gave to\n"
        "  Joe\n"
        "\nThat is all.\n"
    )
    assert read_corpus(path, text_layout=layout).documents == [
        [
            "Things that we need for the trip to the north, which will take the whole of the week:",
            "* the map that lies on the table in the old hall",
            "* a lamp, since nobody knows how long the night will be",
            "- Warm clothes and the boots that Ann Lee gave to Joe",
            "That is all.",
        ]
    ]

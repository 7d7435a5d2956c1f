"""Lines that a margin cut are joined to paragraphs, and no others."""

import random

import pytest

from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.raw_block import RawBlock, Texts


def block_of_text(text: str) -> DocumentBlock:
    """Return the block that is made of a row of a table."""
    return make_block(
        RawBlock(source="a.jsonl", index=0, texts=Texts.of_rows([text.encode()], [1])),
        DocumentRules(),
    )


WORDS = {
    "Thai": "ตลาด สวน ท่าเรือ บ้าน แม่น้ำ โรงเรียน ไม่มีใคร ตอบ เดิน ผ่าน ฝนตก ทุกวัน เมื่อวาน",
    "Lao": "ຕະຫຼາດ ສວນ ບ້ານ ແມ່ນ້ຳ ໂຮງຮຽນ ຕອບ ຍ່າງ ຝົນຕົກ",
    "Tibetan": "ཁྲོམ་ གླིང་ག་ ཁང་པ་ གཙང་པོ་ སློབ་གྲྭ་ ཆར་པ་",
    "Khmer": "ផ្សារ ស្ពាន សាលា ទន្លេ ផ្ទះ ភ្លៀង ដើរ",
    "Burmese": "ဈေး တံတား ကျောင်း မြစ် အိမ် မိုး လမ်း",
}


@pytest.mark.parametrize("script", WORDS)
@pytest.mark.parametrize("most", [4, 8, 14])
def test_lines_without_spaces_stay_apart(script, most):
    """The next line's first word is no whole line, where words have no spaces between."""
    new = random.Random(f"{script} {most}")
    words = WORDS[script].split()
    lines = ["".join(new.choices(words, k=new.randint(3, most))) for _ in range(300)]
    assert block_of_text("\n".join(lines)).sentences.to_pylist() == lines


@pytest.mark.parametrize(
    "lines",
    [
        ["Name: Ambrose", "Born: 1850", "Town: Ambleford", "Trade: miller", "Sons: three"],
        [f"2031-03-{day:02} 10:00 INFO request {day} took 12 ms" for day in range(10, 30)],
        [f"{number} rue du Marché" for number in range(100, 140)],
        [f"Caption {number} of the old bridge at Ambleford" for number in range(100, 140)],
        [f"이장은 {number}주 동안 마을 시장을 닫겠다고 말했다" for number in range(100, 140)],
    ],
)
def test_lines_of_one_length_stay_apart(lines):
    assert block_of_text("\n".join(lines)).sentences.to_pylist() == lines


def test_items_that_end_with_semicolons_stay_apart():
    months = [f"{name}, {days} days;" for name, days in (("January", 31), ("February", 28))] * 8
    text = "The year has these months:\n" + "\n".join(months)
    assert block_of_text(text).sentences.to_pylist() == text.split("\n")


def test_clauses_are_joined_to_sentences():
    sentence = "Prudence had promised Hester to come back before winter,\nbut never did."
    lines = "\n".join([sentence, "It rained,\nand the bridge was closed.", "Nobody came."] * 5)
    expected = [
        "Prudence had promised Hester to come back before winter, but never did.",
        "It rained, and the bridge was closed.",
        "Nobody came.",
    ]
    assert block_of_text(lines).sentences.to_pylist() == expected * 5


def test_drawn_lines_are_no_text():
    text = "=====\nTitle\n=====\n\nOne. Two.\n\nPart\n----\n+---+----+\n| a | b |\n-- \n.. note"
    found = block_of_text(text)
    assert found.sentences.to_pylist() == [
        *("Title", "One.", "Two.", "Part", "| a | b |", ".. note"),
    ]
    assert found.evidence.dropped_lines == {"drawn line": 5}


def test_double_spaced_lines_are_joined_and_paragraphs_between_blank_lines_are_not():
    wrapped = [
        "The mayor closed the bridge for some weeks because the river had",
        "risen again during the night. Nobody knew how long it would take,",
        "and the market was moved to the other side. After the winter the",
        "bridge was opened again, and the first visitors came back to see",
    ]
    sentence = "The mayor closed the bridge. Nobody knew why, and nobody asked."
    joined = " ".join([*wrapped, "the garden."] * 4)
    text = "\n\n".join([*wrapped, "the garden."] * 4)
    found = block_of_text(text).sentences.to_pylist()
    assert " ".join(found) == joined
    assert max(map(len, found)) < 140
    assert min(len(each) for each in found) > 25
    assert len(block_of_text("\n\n".join([sentence] * 20)).line_offsets) == 21

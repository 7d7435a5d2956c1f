import string
import unicodedata

import pytest
from behavior.timing import superlinear_growth
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.text.casing import normalize, vocabulary_casing
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS

_SMALL = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
_LARGE = [piece.upper() for piece in _SMALL]
_WORDS = [f"word{number}" for number in range(60)]


@pytest.mark.parametrize(
    ("own", "is_cased"),
    [
        ([], False),
        (["COVID"], False),
        (["COVID", "NASA", "McDonald", "[EMAIL]", "<URL>", "[unused1]"], False),
        (_LARGE, True),
        (["The", "House", *_LARGE], True),
        (["[EMAIL]", "<URL>", "[NUM]", *(f"[unused{number}]" for number in range(99))], False),
        (["ال", "##ال", "北", "京"], False),
    ],
)
def test_a_few_words_with_capitals_do_not_make_a_vocabulary_cased(own, is_cased):
    assert vocabulary_casing([*SPECIAL_TOKENS, *_SMALL, *_WORDS, *own]).is_cased == is_cased


def test_letters_decide_where_few_entries_have_capitals():
    # As of a language whose letters have no large forms, with some English in it.
    georgian = [chr(code_point) * 2 for code_point in range(0x10D0, 0x10F0)] * 40
    assert vocabulary_casing([*georgian, "A", "B", "a", "b"]).is_cased
    assert not vocabulary_casing([*georgian, "USA", "NATO", "a", "b"]).is_cased


def test_words_alone_are_cased_where_many_have_capitals():
    assert vocabulary_casing([*SPECIAL_TOKENS, "the", "House", "Man"]).is_cased
    assert not vocabulary_casing([*SPECIAL_TOKENS, "the", "house", "man"]).is_cased


def test_the_reason_counts_and_names_the_entries():
    few = vocabulary_casing([*SPECIAL_TOKENS, *_SMALL, "COVID", "NASA"])
    assert few.reason == "2 of 54 entries with letters hold capitals: COVID, NASA"
    assert vocabulary_casing(_SMALL).reason == "0 of 52 entries with letters hold capitals"


@pytest.mark.parametrize(
    ("entry", "has_accents"),
    [("naïve", True), ("हिन्दी", True), ("й", True), ("cafe", False), ("ß", False), ("北", False)],
)
def test_marks_that_lower_casing_strips_are_accents(entry, has_accents):
    assert vocabulary_casing([*_SMALL, entry]).has_accents == has_accents


# Normal forms: what Python returns, in time in proportion to the text.
MARKS = "\u0300\u0301\u0308\u0315\u0327\u0344\u0345\u0f71\u0f72\u0f73\u0f81\u05b0\u3099"
OTHERS = "a\u00e9\u09c7\u09be\u1100\u1161\u11a8\n "


@given(st.lists(st.tuples(st.text(MARKS + OTHERS, max_size=6), st.integers(0, 80))))
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_equals_pythons(form, parts):
    text = "".join(part * count for part, count in parts)
    assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize(
    "marks", ["\u0f71\u0f72", "\u0f73", "\u0315\u0300", "\u0344", "\u0308\u0301"]
)
def test_piles_of_marks_are_no_slower_than_text(marks):
    # Python's own sorting takes minutes for as many.
    assert len(normalize("NFC", "a" + marks * 200_000)) > 200_000
    growth = superlinear_growth(
        lambda text: normalize("NFC", text), lambda size: "a" + marks * size, size=200_000
    )
    assert growth is None

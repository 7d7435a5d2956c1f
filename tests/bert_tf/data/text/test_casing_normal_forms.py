"""Normal forms: what Python returns, in time in proportion to the text."""

import unicodedata

import pytest
from behavior.timing import superlinear_growth
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.text.casing import normalize

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

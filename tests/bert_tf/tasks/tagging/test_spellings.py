"""Tags as other tools spell them."""

from __future__ import annotations

import pytest

from bert_tf.tasks.tagging.spellings import shown_spellings, usual_spellings


def spelled(tags):
    counts = dict.fromkeys(tags.split(), 1)
    spellings = usual_spellings(counts)
    return " ".join(spellings.get(tag, tag) for tag in counts)


@pytest.mark.parametrize(
    ("tags", "usual"),
    [
        ("O B-PER I-PER", "O B-PER I-PER"),
        ("O B-o I-o", "O B-o I-o"),
        ("o b-per i-per", "O B-per I-per"),
        ("O b-PER I-PER", "O B-PER I-PER"),
        ("O B_PER I_PER", "O B-PER I-PER"),
        ("O B:a/b I:a/b", "O B-a/b I-a/b"),
        ("O PER-B PER-I LOC-B", "O B-PER I-PER B-LOC"),
        ("O per_b per_i", "O B-per I-per"),
        ("O B_PER B_LOC", "O B-PER B-LOC"),
        ("O B-PER M-PER E-PER S-LOC", "O B-PER I-PER E-PER S-LOC"),
        ("O B-PER M-PER E-PER W-LOC", "O B-PER I-PER E-PER S-LOC"),
        ("B M E S", "B I E S"),
        ("b i o", "B I O"),
        ("0 B-PER I-PER", "O B-PER I-PER"),
        ("O 0 OTHER _ B-PER I-PER", "O O O O B-PER I-PER"),
        ("O B-a L-a U-a I-a", "O B-a L-a U-a I-a"),
        ("O I-a E-a", "O I-a E-a"),
        ("NN VB I _ -", "NN VB I _ -"),
        ("n v b i", "n v b i"),
        ("O PER LOC", "O PER LOC"),
        ("O M-a X-b", "O M-a X-b"),
        ("NN-s VB-s", "NN-s VB-s"),
        ("O 0 PER", "O 0 PER"),
    ],
)
def test_tags_are_written_as_the_schemes_have_them(tags, usual):
    assert spelled(tags) == usual


def test_of_tags_without_a_scheme_the_one_of_most_words_may_be_outside():
    assert usual_spellings({"0": 9, "PER": 3, "LOC": 1}) == {"0": "O"}
    assert usual_spellings({"other": 2, "PER": 3}) == {}
    assert usual_spellings({"_": 9, "PER": 3, "LOC": 1}) == {"_": "O"}
    assert usual_spellings({".": 3, "NN": 5, "VB": 4}) == {}
    assert usual_spellings({"-": 9}) == {}
    assert usual_spellings({}) == {}


def test_a_type_named_o_is_outside_where_nothing_else_is():
    assert usual_spellings({"B-O": 9, "B-PER": 2, "I-PER": 1}) == {"B-O": "O"}
    assert usual_spellings({"B-O": 9, "B-PER": 2, "O": 1}) == {}


def test_a_few_other_tags_do_not_hide_a_form():
    assert usual_spellings({"B_a": 50, "I_a": 49, "x": 1}) == {"B_a": "B-a", "I_a": "I-a"}
    assert usual_spellings({"B_a": 50, "I_a": 30, "x": 12, "y": 8}) == {}


@pytest.mark.parametrize("outside", ["<O>", "X", "*", "EMPTY", "-O", "No-Entity", "O-", "NIL"])
@pytest.mark.parametrize("count", [2000, 40])
def test_the_only_tag_without_a_prefix_is_outside(outside, count):
    counts = {outside: count, "B-PER": 30, "I-PER": 5, "B-LOC": 20}
    assert usual_spellings(counts) == {outside: "O"}
    counts = {outside: count, "B_PER": 30, "I_PER": 5}
    assert usual_spellings(counts) == {outside: "O", "B_PER": "B-PER", "I_PER": "I-PER"}


@pytest.mark.parametrize(
    "counts",
    [
        {"O": 900, "X": 50, "B-PER": 30, "I-PER": 5},  # which of the two is outside?
        {"PER": 900, "B-PER": 30, "I-PER": 5},
        {"X": 900, "Y": 3, "B-PER": 30},
        {"NN": 900},
        {"NN": 9, "VB": 3, "B": 1},
    ],
)
def test_other_tags_without_a_prefix_are_not(counts):
    assert "O" not in usual_spellings(counts).values()


def test_some_are_shown():
    text = shown_spellings({"0": "O", "b-x": "B-x", "i-x": "I-x", "b-y": "B-y"})
    assert text == "'0' is read as O, 'b-x' as B-x, 'i-x' as I-x and 1 more alike"

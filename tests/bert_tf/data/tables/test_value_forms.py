"""Truths and scores, splits and pairs by name, and texts that look alike."""

import pytest

from bert_tf.data.tables.value_forms import (
    are_scores,
    are_truths,
    is_blob,
    is_cut,
    is_split,
    numbers_of_truths,
    second_text,
    skeleton,
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0", "1"], True),
        ([0, 1, None], True),
        ([False, True], True),
        (["Yes", "no", "", "nan"], True),
        (["-1", "1"], True),
        (["0"], False),
        (["0", "2"], False),
        (["no", "true"], False),
        (["0", "1", "2"], False),
    ],
)
def test_truths(values, expected):
    assert are_truths(values) is expected


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("is_valid", [True, False], True),
        ("anything", ["train", "test"], True),
        ("Usage", ["Training", "PrivateTest"], True),
        ("fold", [0, 1, 2], True),
        ("anything", ["test", "dev"], False),  # none to train on
        ("vehicle", ["train", "bus"], False),
        ("is_valid", ["a", "b"], False),
        ("fold", range(40), False),  # of cloth
        ("split", ["train"], False),
        ("label", [0, 1], False),
    ],
)
def test_splits(name, values, expected):
    assert is_split(name, values) is expected


def test_second_texts_are_known_by_name():
    assert second_text("premise", ["id", "Hypothesis"]) == "Hypothesis"
    assert second_text("Question1", ["question2"]) == "question2"
    assert second_text("text_a", ["text_b"]) == "text_b"
    assert second_text("q1", ["q2"]) == "q2"
    assert second_text("text", ["title", "text2"]) is None
    assert second_text("sentence2", ["sentence1"]) is None
    assert second_text("a", ["b"]) is None


@pytest.mark.parametrize(
    "word",
    [
        *("Donaudampfschifffahrtsgesellschaft", "http://t.co/aB3dE5fG", "InternationalBusiness"),
        *("iPhone12ProMax", "#ThrowbackThursday", "0123456789abcdef", "McDonaldsRestaurants"),
        *("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "a1b2", "Rechtsschutzversicherungsgesellschaften"),
    ],
)
def test_long_words_are_no_blobs(word):
    assert not is_blob(word)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 4, False), (1, 4, True), (0, 3, True), (0, 5, True), (5, 5, True), (9, 11, False)],
)
def test_entities_that_are_cut(start, end, expected):
    assert is_cut("anna met 東京都", start, end) is expected


@pytest.mark.parametrize(
    "same",
    [
        ("spam", "sp\u0430m", "SP\u0410M", "ｓｐａｍ", " spam", "sp\u200bam"),
        ("don't", "don’t", "don‘t", "DON`T", "donʼt"),
        ("garden", "'garden'", '"garden"', "“garden”"),
        ("a-b", "a–b", "a—b", "a−b", "a‐b"),
        ("HEAT", "НЕАТ", "ΗΕΑΤ"),  # Cyrillic, Greek
    ],
)
def test_texts_that_look_alike(same):
    assert len(set(map(skeleton, same))) == 1


def test_texts_that_look_different():
    words = [
        "garden",
        "gardens",
        "нет",
        "да",
        "ναι",
        "όχι",
        "don't",
        "dont",
        "a b",
        "ab",
        "``",
        "''",
    ]
    assert len(set(map(skeleton, words))) == len(words)


def test_words_for_yes_and_no_are_numbers():
    assert numbers_of_truths(["True", "false", " yes"]) == ["1", "0", "1"]
    for others in (["1", "0"], ["-1", "1"], ["True", "0.5"], ["true", ""]):
        assert numbers_of_truths(others) == others


def test_negations_are_numbers():
    assert numbers_of_truths(["dup", "not dup", "Dup "]) == ["1", "0", "1"]
    assert numbers_of_truths(["irrelevant", "relevant"]) == ["0", "1"]
    assert numbers_of_truths(["ja", "nein"]) == ["1", "0"]
    for others in (["cat", "dog"], ["positive", "negative"], ["a", "not b"]):
        assert numbers_of_truths(others) == others


def test_a_mark_at_the_end_looks_alike():
    assert skeleton("room.") == skeleton("Room") and skeleton("...") == "..."


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0.0", "4.75", ""], True),
        ([-0.5, 1.0], True),
        ([0, 1, 2, 3], False),
        ([1, 5], False),
        ([12.5, 80.25], False),
        ([12, 17, 25], False),
        ([1999, 2001], False),
        (["a", "1"], False),
        ([120.5, 3.25], False),
        ([0.5], False),
    ],
)
def test_scores(values, expected):
    assert are_scores(values) is expected

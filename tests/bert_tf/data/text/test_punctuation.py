"""Ranges of punctuation against each character."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bert_tf.data.text.punctuation import are_punctuation, are_words_alone, is_word_alone


@pytest.mark.slow  # all code points
def test_ranges_are_those_of_the_characters():
    codes = np.arange(sys.maxunicode + 1)
    alone = np.array([is_word_alone(chr(code)) for code in codes.tolist()])
    np.testing.assert_array_equal(are_words_alone(codes), alone)
    marks = are_punctuation(codes)
    assert not (marks & ~alone).any()
    shown = {character: bool(marks[ord(character)]) for character in "a1 .$'“。·北가ー"}
    assert [character for character, is_mark in shown.items() if is_mark] == [*".$'“。·"]

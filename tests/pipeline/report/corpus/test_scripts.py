"""Scripts by names are those of Unicode's property, for all letters in use."""

import sys
from collections import defaultdict

import pytest

from pipeline.report.corpus.scripts import OTHER, count_scripts, main_script, script_of

SCRIPTS = """
Latin Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati
Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian Hangul Ethiopic
Cherokee Khmer Mongolian Hiragana Katakana Bopomofo Han
"""


@pytest.mark.parametrize("script", SCRIPTS.split())
def test_letters_are_of_the_script_that_unicode_says(script):
    regex = pytest.importorskip("regex")  # has Unicode's tables
    everything = "".join(map(chr, range(0x30000))).encode("utf-16", "ignore").decode("utf-16")
    letters = regex.findall(rf"(?=\p{{L}})\p{{Script={script}}}", everything)
    named = [letter for letter in letters if script_of(letter) != OTHER]
    assert len(named) > 0.7 * len(letters)
    assert {script_of(letter) for letter in named} == {script}


def test_what_is_no_letter_has_no_script():
    assert count_scripts(["ab1. я", "中中"]) == {"Han": 2, "Latin": 2, "Cyrillic": 1}


def test_no_letter_is_of_a_script_that_unicode_does_not_know():
    regex = pytest.importorskip("regex")
    letters = defaultdict(str)
    for character in filter(str.isalpha, map(chr, range(sys.maxunicode + 1))):
        letters[script_of(character)] += character
    del letters[OTHER]  # styled letters, such as those of formulas, and irregular names
    in_unicode = {"Canadian syllabics": "Canadian_Aboriginal", "Khitan small script": "Kits"}
    for script, characters in letters.items():
        name = in_unicode.get(script, script.replace(" ", "_"))
        assert regex.fullmatch(rf"\p{{Script={name}}}+", characters), script


def test_the_main_script_of_a_text_is_that_of_its_first_letters():
    assert main_script("1" * 400 + "Привет") == "Cyrillic"
    assert main_script("a" * 60 + "я" * 300) == "Latin"
    assert main_script("12 34.") == main_script("") == OTHER

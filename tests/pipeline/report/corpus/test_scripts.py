"""Scripts by names are those of Unicode's property, for all letters in use."""

import pytest

from pipeline.report.corpus.scripts import OTHER, count_scripts, script_of

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

"""Words as published rules count them: spaCy's, but for its exceptions."""

import numpy as np
import pytest

from pipeline.corpus.curation.words import HAS_LETTER, HAS_MORE_THAN_MARKS, find_words


def words_of(text):
    data = np.frombuffer(text.encode(), np.uint8)
    found = find_words(data, np.zeros(1, np.int64), np.full(1, len(data)))
    lengths = found.characters.tolist()
    words = []
    rest = text
    for length in lengths:
        rest = rest.lstrip()
        words.append(rest[:length])
        rest = rest[length:]
    return words, found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("So it goes, on.", "So|it|goes|,|on|."),
        ("it's we'll 'so'", "it|'s|we|'ll|'|so|'"),
        ("wait... what!! --", "wait|...|what|!|!|--"),
        (
            "well-known UTF-8 3-4 3–4 7/10 either/or",
            "well|-|known|UTF-8|3|-|4|3–4|7/10|either|/|or",
        ),
        ("1,000.5 a,b x@y.org snake_case", "1,000.5|a|,|b|x@y.org|snake_case"),
        ("Mr. H. of the U.S. said.", "Mr.|H.|of|the|U.S.|said|."),
        ("(a) $5 5% a'(b", "(|a|)|$|5|5|%|a|'|(|b"),
        ("你好a ไทย", "你|好|a|ไ|ท|ย"),
        ("e\u0301té…", "e\u0301té|…"),
    ],
)
def test_words_and_marks(text, words):
    assert words_of(text)[0] == words.split("|")


def test_kinds_and_equal_words():
    words, found = words_of("12 ab ... ab a1 € '")
    has_letter = found.kinds & HAS_LETTER > 0
    assert [word for word, yes in zip(words, has_letter, strict=True) if yes] == ["ab", "ab", "a1"]
    is_word = found.kinds & HAS_MORE_THAN_MARKS > 0
    assert [word for word, yes in zip(words, is_word, strict=True) if not yes] == ["...", "'"]
    assert len(np.unique(found.hashes)) == len(set(words))

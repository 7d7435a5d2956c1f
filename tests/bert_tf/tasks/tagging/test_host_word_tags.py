"""Tags of a file's words, by the rule that rows are measured by."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.tasks.tagging.host import predicted_words, tags_of_words


def prediction(*words):
    return [{"start": start, "end": end, "tag": tag} for start, end, tag in words]


def test_a_word_has_the_tag_of_the_first_of_berts_words_in_it():
    rows = [["don't", "go"], ["\u200b", "New York", "ok"]]
    predicted = [
        prediction((0, 3, "B-a"), (3, 4, "I-a"), (4, 5, "O"), (6, 8, "B-b")),
        prediction((2, 5, "B-c"), (6, 10, "I-c"), (11, 13, "O")),
    ]
    expected = [["B-a", "B-b"], ["O", "B-c", "O"]]
    assert tags_of_words(rows, {"predicted_tags": predicted}) == expected
    texts = np.array([json.dumps(row) for row in predicted], object)  # as exported models have it
    assert tags_of_words(rows, {"predicted_tags": texts}) == expected
    words, tags = predicted_words(texts)
    assert words.offsets.tolist() == [0, 4, 7] and tags[4] == "B-c"


@given(st.lists(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1), min_size=1))
def test_every_word_finds_its_own(rows):
    """Words of several of BERT's, of which each has a tag of its own, or of none."""
    words, predicted, expected = [], [], []
    for row in rows:
        texts, tags, place, parts = [], [], 0, []
        for number, sizes in enumerate(row):
            texts.append("x" * sum(sizes) or "\u200b")
            tags.append(f"{number}.0" if sizes else "O")
            start = place
            for part, size in enumerate(sizes):
                parts.append((start, start + size, f"{number}.{part}"))
                start += size
            place += len(texts[-1]) + 1
        words.append(texts)
        expected.append(tags)
        predicted.append(prediction(*parts))
    assert tags_of_words(words, {"predicted_tags": predicted}) == expected

"""Words of raw text and of rows of words."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.serving.signatures import WORDS_WITHOUT_TOKENS
from bert_tf.tasks.tagging.host import columns_of_rows
from bert_tf.tasks.tagging.schemes import continuing_tag, scheme_tags
from bert_tf.tasks.tagging.words import (
    TaggedWords,
    TextWords,
    basic_words,
    joined_words,
    predicted_words,
)

LETTERS = [*"ab1.',-/ ", "北", "。", "가", "é"]
texts = st.text(st.sampled_from(LETTERS), max_size=20)


def split(text):
    """BERT's words: an ideograph, a punctuation mark, or letters up to these and to blanks."""
    spans = [found.span() for found in re.finditer(r"[北京]|[^\w\s]|[^\W北京]+", text)]
    return TextWords(
        offsets=np.array([0, len(spans)]),
        starts=np.array([start for start, _ in spans], np.int64),
        ends=np.array([end for _, end in spans], np.int64),
    )


def joined(text, tags, scheme="bio"):
    words = split(text)
    scores = np.arange(len(tags)) / 10
    found = joined_words([text], TaggedWords(words=words, tags=tags.split(), scores=scores), scheme)
    (items,) = found.listed()
    return [(text[item["start"] : item["end"]], item["tag"]) for item in items]


@pytest.mark.parametrize(
    ("text", "scheme", "tags", "expected"),
    [
        ("Mr. Okafor", "bio", "B-p I-p I-p", "Mr.=B-p Okafor=I-p"),
        ("Mr. Okafor.", "bio", "B-p I-p I-p O", "Mr.=B-p Okafor=I-p .=O"),
        ("O'Dell's", "bio", "B-p I-p I-p O O", "O'Dell=B-p '=O s=O"),
        ("U.S.-led", "bio", "B-l I-l I-l I-l O O", "U.S.=B-l -=O led=O"),
        ("Bonn,Ulm", "bio", "B-l O B-l", "Bonn=B-l ,=O Ulm=B-l"),
        ("Bonn/Ulm", "bio", "B-l I-m B-l", "Bonn=B-l /=I-m Ulm=B-l"),
        ("10-year", "bio", "O O O", "10=O -=O year=O"),
        ("北京", "bio", "B-l I-l", "北=B-l 京=I-l"),
        ("U.S. army", "bilou", "U-l L-l L-l L-l O", "U.S.=U-l army=O"),
        ("the U.S.", "bilou", "B-l L-l L-l L-l L-l", "the=B-l U.S.=L-l"),
        ("U.S.", "bilou", "B-l I-l I-l L-l", "U.S.=U-l"),
        ("a U.S.", "iobes", "B-l I-l I-l I-l E-l", "a=B-l U.S.=E-l"),
        ("北京", "bilou", "U-l L-l", "北京=U-l"),
        ("U.S. to-day.)", "plain", "N N N N A A A . .", "U.S.=N to-day=A .=. )=."),
        ("hi.http://x", "plain", "X . X X X X X", "hi=X .=. http://x=X"),
        ("北京", "plain", "N N", "北=N 京=N"),
        ("left,right", "plain", "O O O", "left=O ,=O right=O"),
    ],
)
def test_glued_words_are_one_if_their_tags_say_so(text, scheme, tags, expected):
    assert " ".join(map("=".join, joined(text, tags, scheme))) == expected


@pytest.mark.parametrize("scheme", ["bio", "bilou", "iobes", "plain"])
@given(st.lists(st.lists(st.sampled_from(LETTERS[:-5]), max_size=6), max_size=6), st.data())
def test_words_that_training_saw_come_back(scheme, rows, data):
    """Each part tagged as training teaches it: words with a tag other than O are found whole."""
    words = ["".join(row).replace(" ", "") for row in rows]
    words = [word for word in words if word]
    tags = [data.draw(st.sampled_from(["O", *scheme_tags(["x", "y"], scheme)])) for _ in words]
    text, parts = " ".join(words), []
    for word, tag in zip(words, tags, strict=True):
        others = len(split(word).starts) - 1
        parts += [tag, *[continuing_tag(tag, scheme)] * others]
    found = joined(text, " ".join(parts), scheme)
    for word, tag in zip(words, tags, strict=True):
        has_letter = any(map(str.isalnum, word))
        if tag != "O" and (has_letter or scheme != "plain"):
            assert (word, tag) in found


@given(st.lists(texts, min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_joined_words_are_cut_to_those_of_bert_again(rows, seed):
    each = [split(text) for text in rows]
    words = TextWords(
        offsets=np.cumsum([0, *(len(one.starts) for one in each)]),
        starts=np.concatenate([one.starts for one in each]),
        ends=np.concatenate([one.ends for one in each]),
    )
    tags = np.random.default_rng(seed).choice(["O", "B-x", "I-x"], len(words.starts)).tolist()
    found = joined_words(rows, TaggedWords.gold(words, tags), "bio")
    cut = basic_words(rows, found.words)
    for name in ("offsets", "starts", "ends"):
        assert getattr(cut, name).tolist() == getattr(words, name).tolist()


def prediction(*words):
    return [
        {"start": start, "end": end, "tag": tag, "score": score} for start, end, tag, score in words
    ]


def test_a_row_of_words_is_predicted_by_its_words():
    rows = [["don't", "go"], ["\u200b", "New York", "ok"], ["Ann", "\n", "Lee", "\n"]]
    predicted = [
        prediction((0, 3, "B-a", 0.9), (3, 4, "I-a", 0.1), (4, 5, "O", 0.1), (6, 8, "B-b", 0.7)),
        prediction((2, 5, "B-c", 0.5), (6, 10, "I-c", 0.1), (11, 13, "O", 0.5)),
        prediction((0, 3, "B-a", 0.4), (6, 9, "I-a", 0.6)),
    ]
    texts = np.array([json.dumps(row) for row in predicted], object)  # as exported models have it
    for column in (predicted, texts):
        found = columns_of_rows(rows, {"predicted_tags": column}, {"scheme": "bio"})
        assert found["predicted_token_tags"] == [
            ["B-a", "B-b"],
            ["O", "B-c", "O"],
            ["B-a", "I-a", "I-a", "O"],
        ]
        assert found[WORDS_WITHOUT_TOKENS].tolist() == [0, 1, 2]
        assert found["predicted_tags"][:2] == [
            prediction((0, 5, "B-a", 0.9), (6, 8, "B-b", 0.7)),
            prediction((2, 10, "B-c", 0.5), (11, 13, "O", 0.5)),
        ]
        assert [
            (entity["text"], entity["score"])
            for row in found["predicted_entities"]
            for entity in row
        ] == [("don't", 0.9), ("go", 0.7), ("New York", 0.5), ("Ann \n Lee", 0.5)]


def test_words_of_earlier_releases_have_the_score_of_their_text():
    words = [{"start": 0, "end": 1, "tag": "O"}, {"start": 2, "end": 3, "tag": "O"}]
    found = predicted_words({"predicted_tags": [[], words], "mean_score": np.array([0.0, 0.25])})
    assert found.scores.tolist() == [0.25, 0.25] and found.words.offsets.tolist() == [0, 0, 2]


@given(st.lists(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1), min_size=1))
def test_every_word_finds_its_own(rows):
    """Words of several of BERT's, of which each has a tag of its own, or of none."""
    words = []
    predicted = []
    expected = []
    for row in rows:
        texts = []
        tags = []
        place = 0
        parts = []
        for number, sizes in enumerate(row):
            texts.append("x" * sum(sizes) or "\u200b")
            tags.append(f"{number}.0" if sizes else "O")
            start = place
            for part, size in enumerate(sizes):
                parts.append((start, start + size, f"{number}.{part}", 1.0))
                start += size
            place += len(texts[-1]) + 1
        words.append(texts)
        expected.append(tags)
        predicted.append(prediction(*parts))
    found = columns_of_rows(words, {"predicted_tags": predicted}, {"scheme": "plain"})
    assert found["predicted_token_tags"] == expected

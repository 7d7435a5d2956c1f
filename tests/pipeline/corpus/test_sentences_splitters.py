"""The choice of sentence splitters, and that a library's sentences lie where it found them."""

import importlib.util

import numpy as np
import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import UsageError
from pipeline.corpus.sentences import make_splitter, split_sentences


def split(splitter, paragraphs):
    data = b"|".join(paragraph.encode() for paragraph in paragraphs)
    lengths = np.array([len(paragraph.encode()) for paragraph in paragraphs])
    stops = np.cumsum(lengths + 1) - 1
    starts, ends, counts = splitter(np.frombuffer(data, np.uint8), stops - lengths, stops)
    sentences = [data[start:end].decode() for start, end in zip(starts, ends, strict=True)]
    assert sum(counts) == len(sentences)
    borders = np.cumsum([0, *counts])
    return [sentences[borders[p] : borders[p + 1]] for p in range(len(paragraphs))]


def test_names_give_splitters():
    assert make_splitter("none", "en") is None
    assert make_splitter("rules", "en") is split_sentences


def test_the_library_knows_the_language():
    paragraphs = ["Das gilt z. B. hier. Am 3. Januar kam er.", "Ende", "Er blieb! Ja."]
    assert split(make_splitter("sentencex", "de"), paragraphs) == [
        ["Das gilt z. B. hier.", "Am 3. Januar kam er."],
        ["Ende"],
        ["Er blieb!", "Ja."],
    ]


PARAGRAPHS = st.text(st.sampled_from("aB1.!?。\"') (é-"), min_size=1).map(
    lambda text: " ".join(text.split())
)


@given(st.lists(PARAGRAPHS.filter(bool), max_size=20))
def test_sentences_are_the_librarys_paragraph_by_paragraph(paragraphs):
    found = split(make_splitter("sentencex", "en"), paragraphs)
    expected = [
        [piece.strip() for piece in sentencex.segment("en", paragraph) if piece.strip()]
        for paragraph in paragraphs
    ]
    assert found == expected


def test_no_paragraph_is_lost_in_long_texts():
    paragraphs = [f"Number {n} is here. It stays" for n in range(3000)]
    expected = [[f"Number {n} is here.", "It stays"] for n in range(3000)]
    assert split(make_splitter("sentencex", "en"), paragraphs) == expected


def test_a_missing_library_and_a_wrong_language_are_reported(monkeypatch):
    with pytest.raises(UsageError, match="sentence_language 'English!': expected a language code"):
        make_splitter("sentencex", "English!")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        UsageError,
        match=r"needs sentencex, not installed here; pip install 'bert-pipeline\[sentencex\]'",
    ):
        make_splitter("sentencex", "en")

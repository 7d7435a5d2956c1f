"""Counts of words, against a plain count of HuggingFace's."""

import collections

import numpy as np
import pyarrow as pa
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from pipeline.vocabulary.word_counter import WordCounter


def test_long_words_are_left_out_and_counted():
    counter = WordCounter(lowercase=True, max_word_length=3)
    counter.count(pa.array(["abc abcd ÄÖÜ é̀é̀é̀é̀ x", "abcde"]))
    words, counts = counter.words()
    assert dict(zip(words.to_pylist(), counts.tolist(), strict=True)) == {
        "abc": 1,
        "aou": 1,
        "x": 1,
    }
    assert counter.too_long == 3


@fewer_examples(0.5)
@given(st.lists(st.text("abcdefgh ,é", max_size=30), max_size=60), st.integers(1, 5))
def test_counts_equal_a_plain_count(texts, parts):
    """Also when counted in parts that are added up."""
    normalizer = BertNormalizer(lowercase=True)
    expected = collections.Counter(
        word
        for text in texts
        for word, _ in BertPreTokenizer().pre_tokenize_str(normalizer.normalize_str(text))
    )
    total = WordCounter(lowercase=True, max_word_length=100)
    for part in range(parts):
        counter = WordCounter(lowercase=True, max_word_length=100)
        counter.count(pa.array(texts[part::parts], pa.string()))
        total.add(*counter.words())
    words, counts = total.words()
    assert dict(zip(words.to_pylist(), counts.tolist(), strict=True)) == expected
    assert len(total) == len(expected)


def test_tables_grow():
    texts = [f"w{n} v{n} same" for n in range(20_000)]
    counter = WordCounter(lowercase=False, max_word_length=100)
    counter.count(pa.array(texts))
    words, counts = counter.words()
    assert len(words) == len(set(words.to_pylist())) == 40_001
    assert counts.sum() == 60_000
    assert counts[words.to_pylist().index("same")] == 20_000
    assert isinstance(counts, np.ndarray)

"""The learner against HuggingFace's trainer and against what any vocabulary must satisfy."""

import collections
import inspect
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from pipeline.vocabulary.learner import SPECIAL_PIECES, learn_pieces


def learn(word_counts, **changes):
    options = {"vocab_size": 1000, "limit_alphabet": 1000, "min_frequency": 1, **changes}
    counts = np.array(list(word_counts.values()), np.int64)
    return learn_pieces(list(word_counts), counts, **options)


def train_huggingface(word_counts, *, vocab_size, min_frequency):
    tokenizer = BertWordPieceTokenizer(lowercase=False)
    text = (word for word, count in word_counts.items() for _ in range(count))
    tokenizer.train_from_iterator(
        text, vocab_size=vocab_size, min_frequency=min_frequency, show_progress=False
    )
    return set(tokenizer.get_vocab())


def words_of_the_standard_library():
    text = "".join(inspect.getsource(module) for module in (string, collections, inspect))
    return collections.Counter("".join(c if c.isalpha() else " " for c in text).split())


@pytest.mark.parametrize("vocab_size", [200, 500, 900])
def test_it_merges_what_huggingface_merges(vocab_size):
    counts = words_of_the_standard_library()
    ours = learn(counts, vocab_size=vocab_size, min_frequency=2)
    theirs = train_huggingface(counts, vocab_size=vocab_size, min_frequency=2)
    assert len(ours) == len(theirs) == vocab_size
    # Theirs keeps characters as starts of words that only ever continue one, and breaks ties by
    # other numbers.
    assert len(set(ours) & theirs) >= 0.98 * vocab_size


WORDS = st.dictionaries(st.text("abcé", min_size=1, max_size=9), st.integers(1, 50), min_size=1)


@settings(deadline=None)
@given(WORDS, st.randoms(use_true_random=False))
def test_order_does_not_matter(word_counts, random):
    shuffled = list(word_counts.items())
    random.shuffle(shuffled)
    assert learn(word_counts) == learn(dict(shuffled))


@settings(deadline=None)
@given(WORDS)
def test_pieces_are_distinct_and_every_word_can_be_encoded(word_counts):
    vocab = learn(word_counts)
    assert len(set(vocab)) == len(vocab)
    assert tuple(vocab[:5]) == SPECIAL_PIECES
    tokenizer = BertWordPieceTokenizer(
        vocab={piece: index for index, piece in enumerate(vocab)},
        lowercase=False,
        strip_accents=False,
    )
    for word in word_counts:
        assert "[UNK]" not in tokenizer.encode(word, add_special_tokens=False).tokens


def test_a_vocabulary_that_may_grow_without_end_holds_every_word_seen_often_enough():
    word_counts = {"walking": 5, "walked": 2, "walk": 1}
    assert set(learn(word_counts, min_frequency=2)) >= {"walking", "walked"}
    assert "walked" not in learn(word_counts, min_frequency=3)


def test_rare_characters_are_left_out_with_their_words():
    vocab = learn({"ab": 9, "ba": 9, "aŁ": 1}, limit_alphabet=2)
    assert set(vocab[5:9]) == {"a", "b", "##a", "##b"}
    assert not any("Ł" in piece for piece in vocab)


@pytest.mark.parametrize("vocab_size", [5, 6, 7])
def test_a_size_below_the_alphabet_is_kept(vocab_size):
    assert len(learn({"ab": 1, "ba": 1}, vocab_size=vocab_size)) == vocab_size


def test_no_words_give_the_special_pieces():
    assert tuple(learn({})) == SPECIAL_PIECES

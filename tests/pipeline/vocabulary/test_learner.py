"""The learner against HuggingFace's trainer and against the properties of any vocabulary."""

import collections
import inspect
import itertools
import string

import numpy as np
import pyarrow as pa
import pytest
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from pipeline.vocabulary import learner, merging
from pipeline.vocabulary.learner import SPECIALS, learn_vocabulary
from pipeline.vocabulary.quality import measure_fit, prune_pieces, write_words


def learn(word_counts, **changes):
    options = {"vocab_size": 1000, "limit_alphabet": 1000, "min_frequency": 1, **changes}
    counts = np.array(list(word_counts.values()), np.int64)
    return learn_vocabulary(pa.array(list(word_counts), pa.string()), counts, **options)


def train_huggingface(word_counts, *, vocab_size, min_frequency):
    tokenizer = BertWordPieceTokenizer(lowercase=False)
    text = (word for word, count in word_counts.items() for _ in range(count))
    tokenizer.train_from_iterator(
        text, vocab_size=vocab_size, min_frequency=min_frequency, show_progress=False
    )
    return tokenizer


def tokenizer_of(pieces):
    return BertWordPieceTokenizer(
        vocab={piece: index for index, piece in enumerate(pieces)},
        lowercase=False,
        strip_accents=False,
    )


def words_of_the_standard_library():
    text = "".join(inspect.getsource(module) for module in (string, collections, inspect))
    return collections.Counter("".join(c if c.isalpha() else " " for c in text).split())


@pytest.mark.parametrize("vocab_size", [200, 500, 900])
def test_it_merges_what_huggingface_merges(vocab_size):
    counts = words_of_the_standard_library()
    ours = learn(counts, vocab_size=vocab_size, min_frequency=2).pieces
    theirs = train_huggingface(counts, vocab_size=vocab_size, min_frequency=2)
    assert len(ours) == theirs.get_vocab_size() == vocab_size
    # Theirs keeps only continuations that were seen, and breaks ties by other numbers.
    assert len(set(ours) & set(theirs.get_vocab())) >= 0.97 * vocab_size
    words = pa.array(list(counts))
    weights = np.array(list(counts.values()))
    our_fit = measure_fit(ours, words, weights)
    their_fit = measure_fit(list(theirs.get_vocab()), words, weights)
    assert our_fit.pieces_per_word <= 1.005 * their_fit.pieces_per_word


WORDS = st.dictionaries(st.text("abcé", min_size=1, max_size=9), st.integers(1, 50), min_size=1)


@given(WORDS, st.randoms(use_true_random=False), st.integers(13, 40), st.sampled_from([0, 0.5]))
def test_order_does_not_matter(word_counts, random, vocab_size, extra_pieces):
    options = {"vocab_size": vocab_size, "extra_pieces": extra_pieces}
    shuffled = list(word_counts.items())
    random.shuffle(shuffled)
    assert learn(word_counts, **options) == learn(dict(shuffled), **options)


@given(
    WORDS,
    st.integers(10, 60),
    st.integers(1, 4),
    st.text("abcé", min_size=1, max_size=9),
    st.sampled_from([0, 0.25, 2]),
)
def test_every_word_of_kept_characters_can_be_written(
    word_counts, vocab_size, limit, other_word, extra_pieces
):
    learned = learn(
        word_counts, vocab_size=vocab_size, limit_alphabet=limit, extra_pieces=extra_pieces
    )
    assert len(set(learned.pieces)) == len(learned.pieces)
    assert tuple(learned.pieces[:5]) == SPECIALS
    assert len(learned.pieces) <= vocab_size
    tokenizer = tokenizer_of(learned.pieces)
    for word in [*word_counts, other_word]:
        tokens = tokenizer.encode(word, add_special_tokens=False).tokens
        assert ("[UNK]" in tokens) == (not set(word) <= set(learned.alphabet))


def best_pair_again_and_again(word_counts, merges):
    """Return the algorithm as Sennrich et al. write it: all pairs counted anew for each merge."""
    words = {(word[0], *("##" + c for c in word[1:])): count for word, count in word_counts.items()}
    alphabet = sorted({c for word in word_counts for c in word})
    pieces = alphabet + ["##" + c for c in alphabet]
    while merges:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        if not pairs:
            break
        rank = {piece: index for index, piece in enumerate(pieces)}
        best = min(pairs, key=lambda p: (-pairs[p], rank[p[0]], rank[p[1]]))
        merged = best[0] + best[1].removeprefix("##")
        if merged not in rank:
            pieces.append(merged)
            merges -= 1
        renewed = {}
        for word, count in words.items():
            symbols, place = [], 0
            while place < len(word):
                if word[place : place + 2] == best:
                    symbols.append(merged)
                    place += 2
                else:
                    symbols.append(word[place])
                    place += 1
            renewed[tuple(symbols)] = renewed.get(tuple(symbols), 0) + count
        words = renewed
    return pieces


@given(WORDS, st.integers(0, 30))
def test_counts_kept_up_to_date_equal_counts_made_anew(word_counts, merges):
    expected = best_pair_again_and_again(word_counts, merges)
    alphabet = len({c for word in word_counts for c in word})
    learned = learn(word_counts, vocab_size=5 + 2 * alphabet + merges)
    assert learned.pieces[5:] == expected


@pytest.mark.parametrize("chunk_size", [1, 50])
def test_merging_continues_where_it_paused(chunk_size, monkeypatch):
    counts = words_of_the_standard_library()
    whole = learn(counts, vocab_size=900)
    merge, calls = merging._merge, []

    def merge_some(*given):
        calls.append(merge(*given))
        return calls[-1]

    monkeypatch.setattr(merging, "_WORDS_CHUNK_SIZE", chunk_size)
    monkeypatch.setattr(merging, "_merge", merge_some)
    assert learn(counts, vocab_size=900) == whole
    assert calls == [True] * (len(calls) - 1) + [False]
    assert len(calls) > 500 / chunk_size


def test_punctuation_and_chinese_characters_have_no_continuation():
    learned = learn({".": 3, "中": 2, "ab": 1})
    assert learned.pieces[5:] == [".", "a", "b", "中", "##a", "##b", "ab"]


def test_rare_pairs_are_not_merged():
    word_counts = {"walking": 5, "walked": 2, "walk": 1}
    assert set(learn(word_counts, min_frequency=2).pieces) >= {"walking", "walked"}
    assert "walked" not in learn(word_counts, min_frequency=3).pieces


def test_rare_characters_are_left_out_with_their_words():
    learned = learn({"ab": 9, "ba": 9, "aŁ": 1}, limit_alphabet=2)
    assert (learned.alphabet, learned.alphabet_left_out) == ("ab", 1)
    assert set(learned.pieces[5:9]) == {"a", "b", "##a", "##b"}
    assert not any("Ł" in piece for piece in learned.pieces)


def test_the_alphabet_is_cut_to_the_size_wanted():
    learned = learn({"abc": 2, "ab": 1, "a": 1}, vocab_size=10)
    assert learned.alphabet == "ab"
    assert learned.pieces == [*SPECIALS, "a", "b", "##a", "##b", "ab"]


def test_the_least_used_pieces_leave():
    words, counts = pa.array(["abc", "ab", "b"]), np.array([5, 2, 1])
    pieces = [*SPECIALS, "a", "b", "c", "##a", "##b", "##c", "ab", "##bc", "abc"]
    assert prune_pieces(pieces, words, counts, size=13, num_fixed=11) == [*pieces[:12], "abc"]
    assert prune_pieces(pieces, words, counts, size=12, num_fixed=11) == [*pieces[:11], "abc"]
    assert prune_pieces(pieces, words, counts, size=20, num_fixed=11) == pieces


def test_learning_more_and_pruning_writes_text_with_fewer_pieces():
    word_counts = words_of_the_standard_library()
    words, counts = pa.array(list(word_counts)), np.array(list(word_counts.values()))
    merged, pruned = (
        learn(word_counts, vocab_size=400, extra_pieces=extra).pieces for extra in (0, 0.25)
    )
    assert len(merged) == len(pruned) == 400
    assert (
        measure_fit(pruned, words, counts).pieces_per_word
        < 0.99 * measure_fit(merged, words, counts).pieces_per_word
    )


def test_no_words_give_the_special_pieces():
    assert learn({}).pieces == [*SPECIALS]


def test_of_very_many_words_the_most_frequent_are_learned_from(monkeypatch):
    monkeypatch.setattr(learner, "MOST_WORDS", 2)
    learned = learn({"aa": 9, "bb": 5, "cc": 5, "dd": 1})
    assert learned.alphabet == "a"  # of the two seen five times, none rather than one


@given(
    st.lists(st.text("abé", min_size=1, max_size=4).map(lambda p: p), max_size=12, unique=True),
    st.lists(st.text("abé", min_size=1, max_size=4), max_size=12, unique=True),
    st.lists(st.text("abéz", min_size=1, max_size=9), min_size=1, unique=True),
)
def test_pieces_are_counted_as_huggingface_writes_them(beginnings, continuations, words):
    pieces = [*SPECIALS, *beginnings, *("##" + p for p in continuations)]
    tokenizer = tokenizer_of(pieces)
    expected = []
    for word in words:
        tokens = tokenizer.encode(word, add_special_tokens=False).tokens
        expected.append(0 if "[UNK]" in tokens else len(tokens))
    lengths, uses = write_words(pieces, pa.array(words), np.full(len(words), 2))
    assert lengths.tolist() == expected
    assert uses.sum() == 2 * sum(expected)


def test_fit_is_weighed_by_counts():
    words = pa.array(["ab", "a", "z"])
    fit = measure_fit([*SPECIALS, "a", "##b"], words, np.array([2, 5, 1]))
    assert fit.words == 8
    assert fit.pieces_per_word == pytest.approx((2 * 2 + 5 + 1) / 8)
    assert fit.unknown_fraction == pytest.approx(1 / 8)
    assert fit.whole_word_fraction == pytest.approx(5 / 8)
    assert measure_fit(["a"], pa.array([], pa.string()), np.zeros(0, np.int64)) is None


@pytest.mark.slow
@fewer_examples(0.5)
@given(
    st.dictionaries(st.text("abcdé,", min_size=1, max_size=8), st.integers(1, 50), min_size=1),
    st.integers(1, 40),
)
def test_an_extended_vocabulary_keeps_its_ids_and_writes_the_new_words(word_counts, capacity):
    words = {word: count for word, count in word_counts.items() if word == "," or "," not in word}
    base = learn({"abba": 3, "cab": 2}, vocab_size=30).pieces
    extended = learn(words, base=base, vocab_size=len(base) + capacity)
    assert extended.pieces[: len(base)] == base
    assert len(base) <= len(extended.pieces) == len(set(extended.pieces)) <= len(base) + capacity
    array, counts = pa.array(list(words), pa.string()), np.array(list(words.values()), np.int64)
    if len(words):
        before, after = (measure_fit(p, array, counts) for p in (base, extended.pieces))
        assert after.unknown_fraction <= before.unknown_fraction
    kept = [word for word in words if set(word) <= set(extended.alphabet)]
    for word, length in zip(
        kept, write_words(extended.pieces, pa.array(kept), counts)[0], strict=True
    ):
        assert length > 0, word


def test_extending_for_other_words_makes_them_whole():
    base = learn(words_of_the_standard_library(), vocab_size=300).pieces
    medicine = {"myocardial": 90, "infarction": 80, "stenosis": 70, "myocarditis": 60}
    extended = learn(medicine, base=base, vocab_size=310, extra_pieces=1.0).pieces
    assert {"myocardial", "infarction", "stenosis", "myocarditis"} <= set(extended[300:])

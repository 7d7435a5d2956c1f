"""Masked-LM targets: the reference's numbers, and properties on any rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.examples.masking import mask_rows, masking_rules, predictions_by_length

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Specials in odd places, as in Google's vocabularies.
VOCAB = ["[PAD]", "the", "[UNK]", "[CLS]", "##a", "[SEP]", "[MASK]"] + [
    f"##{i}" if i % 3 == 0 else str(i) for i in range(500)
]
PAD, CLS, SEP, MASK = (VOCAB.index(token) for token in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
SPECIAL_IDS = {VOCAB.index(token) for token in SPECIALS}


def rules_for(*, max_seq_length=128, max_predictions=20, prob=0.15, whole_words=False):
    return masking_rules(
        VOCAB,
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions,
        masked_lm_prob=prob,
        whole_word_mask=whole_words,
    )


def rows_of(lengths: list[tuple[int, int]], width: int, seed: int = 0):
    """Rows `[CLS] a [SEP] b [SEP]` of ordinary tokens with a and b of these lengths."""
    random = np.random.default_rng(seed)
    ordinary = np.setdiff1d(np.arange(len(VOCAB)), list(SPECIAL_IDS))
    ids = np.full((len(lengths), width), PAD, np.int32)
    for row, (first, second) in zip(ids, lengths, strict=True):
        row[: first + second + 3] = random.choice(ordinary, first + second + 3)
        row[[0, first + 1, first + second + 2]] = CLS, SEP, SEP
    totals = np.array([first + second + 3 for first, second in lengths], np.int32)
    return ids, totals


def masked(ids, lengths, rules, max_predictions=20, seed=0):
    keys = np.arange(len(ids), dtype=np.uint64) + np.uint64(seed)
    return mask_rows(ids, lengths, keys, rules, max_predictions_per_seq=max_predictions)


@pytest.mark.parametrize(
    ("length", "prob", "maximum", "targets"),
    [(3, 0.15, 20, 1), (30, 0.15, 20, 4), (128, 0.15, 20, 19), (128, 0.3, 20, 20)],
)
def test_the_number_of_targets_rows(length, prob, maximum, targets):
    by_length = predictions_by_length(
        max_seq_length=128, max_predictions_per_seq=maximum, masked_lm_prob=prob
    )
    assert by_length[length] == targets


def test_the_number_of_targets_is_the_references_for_every_length():
    by_length = predictions_by_length(
        max_seq_length=512, max_predictions_per_seq=76, masked_lm_prob=0.15
    )
    assert by_length.tolist() == [min(76, max(1, round(n * 0.15))) for n in range(513)]


@given(
    lengths=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=8),
    prob=st.sampled_from([0.0, 0.15, 0.5, 1.0]),
    max_predictions=st.integers(1, 40),
    whole_words=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_targets_are_where_they_may_be(lengths, prob, max_predictions, whole_words, seed):
    ids, totals = rows_of(lengths, 43, seed)
    rules = rules_for(
        max_seq_length=43, max_predictions=max_predictions, prob=prob, whole_words=whole_words
    )
    before = ids.copy()
    result = masked(ids, totals, rules, max_predictions, seed)
    assert (ids == before).all()
    for row, total in enumerate(totals):
        count = result.counts[row]
        positions = result.positions[row, :count]
        assert (np.diff(positions) > 0).all() and (positions < total).all()
        assert not {CLS, SEP, PAD} & set(before[row, positions].tolist())
        assert (result.target_ids[row, :count] == before[row, positions]).all()
        assert not result.positions[row, count:].any() and not result.target_ids[row, count:].any()
        untouched = np.ones(43, bool)
        untouched[positions] = False
        assert (result.ids[row] == before[row])[untouched].all()
        now = result.ids[row, positions]
        replaced = now[(now != MASK) & (now != before[row, positions])]
        assert not SPECIAL_IDS & set(replaced.tolist())
        wanted = min(max_predictions, max(1, round(int(total) * prob)), int(total) - 3)
        assert count <= wanted
        if not whole_words:
            assert count == wanted
        else:
            assert_whole_words(before[row], positions)


def assert_whole_words(ids, positions):
    for position in range(1, len(ids)):
        begins_segment = ids[position - 1] in (CLS, SEP)
        if VOCAB[ids[position]].startswith("##") and not begins_segment:
            assert (position in positions) == (position - 1 in positions)


def test_whole_words_are_chosen_as_often_as_single_tokens():
    ids, totals = rows_of([(62, 63)] * 500, 128)
    result = masked(ids, totals, rules_for(whole_words=True))
    assert result.counts.mean() > 18.5


def test_the_fractions_of_masks_random_tokens_and_kept_ones():
    ids, totals = rows_of([(62, 63)] * 4000, 128)
    result = masked(ids, totals, rules_for())
    assert (result.counts == 19).all()
    rows = np.arange(len(ids))[:, None]
    now = result.ids[rows, result.positions[:, :19]]
    before = result.target_ids[:, :19]
    assert abs((now == MASK).mean() - 0.8) < 0.01
    assert abs((now == before).mean() - 0.1) < 0.01
    is_random = (now != MASK) & (now != before)
    assert abs(is_random.mean() - 0.1) < 0.01
    drawn = np.bincount(now[is_random], minlength=len(VOCAB))
    ordinary = np.setdiff1d(np.arange(len(VOCAB)), list(SPECIAL_IDS))
    assert drawn[list(SPECIAL_IDS)].sum() == 0 and drawn[ordinary].min() > 0
    places = np.bincount(result.positions[:, :19].ravel(), minlength=128)
    assert places[[0, 63, 127]].sum() == 0
    open_places = np.delete(places, [0, 63, 127])
    assert abs(open_places / open_places.mean() - 1).max() < 0.15


def test_a_rows_choices_follow_from_its_key_alone():
    ids, totals = rows_of([(20, 20)] * 6, 43)
    rules = rules_for(max_seq_length=43)
    together = masked(ids, totals, rules)
    alone = mask_rows(
        ids[3:4], totals[3:4], np.array([3], np.uint64), rules, max_predictions_per_seq=20
    )
    assert (together.ids[3] == alone.ids[0]).all()
    assert (together.ids != masked(ids, totals, rules, seed=100).ids).any()


def words_of(ids):
    """(begin, end) of the words of one row, as `assert_whole_words` sees them."""
    words = []
    for position, token in enumerate(ids):
        if token in (CLS, SEP, PAD):
            continue
        if VOCAB[token].startswith("##") and words and words[-1][1] == position:
            words[-1][1] = position + 1
        else:
            words.append([position, position + 1])
    return words


@given(
    lengths=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=8),
    masking=st.sampled_from(["ngram", "span"]),
    prob=st.sampled_from([0.15, 0.5, 1.0]),
    max_ngram_size=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_ngrams_and_spans_are_whole_words_within_the_number_of_targets(
    lengths, masking, prob, max_ngram_size, seed
):
    ids, totals = rows_of(lengths, 43, seed)
    rules = masking_rules(
        VOCAB,
        max_seq_length=43,
        max_predictions_per_seq=40,
        masked_lm_prob=prob,
        masking=masking,
        max_ngram_size=max_ngram_size,
    )
    result = masked(ids, totals, rules, 40, seed)
    for row, total in enumerate(totals):
        positions = set(result.positions[row, : result.counts[row]].tolist())
        wanted = min(40, max(1, round(int(total) * prob)))
        assert len(positions) == result.counts[row] <= wanted
        left = [end - begin for begin, end in words_of(ids[row]) if begin not in positions]
        for begin, end in words_of(ids[row]):
            assert len({*range(begin, end)} & positions) in (0, end - begin)
        assert not left or len(positions) + min(left) > wanted, "no word is left that would fit"


def single_tokens(rows, length=128):
    """Rows without [SEP] of words of one token."""
    ordinary = [i for i, token in enumerate(VOCAB) if token.isdigit()]
    random = np.random.default_rng(1)
    return random.choice(ordinary, (rows, length)).astype(np.int32), np.full(rows, length, np.int32)


def lone_groups(positions, counts):
    """Lengths of runs of neighboring targets."""
    gaps = np.diff(positions[:, :counts], axis=1) > 1
    lengths = [np.diff(np.flatnonzero(np.concatenate([[True], gap, [True]]))) for gap in gaps]
    return np.concatenate(lengths)


@pytest.mark.slow
def test_ngrams_have_the_weights_of_model_garden():
    """Few targets in long rows, so that n-grams seldom touch and all sizes fit."""
    ids, totals = single_tokens(4000, 512)
    rules = masking_rules(
        VOCAB, max_seq_length=512, max_predictions_per_seq=6, masked_lm_prob=0.15, masking="ngram"
    )
    result = masked(ids, totals, rules, 6)
    assert (result.counts == 6).all()
    sizes = np.bincount(lone_groups(result.positions, 6), minlength=4)[1:4]
    # 1, 1/2, 1/3, but n-grams that do not fit any more give way to shorter ones.
    expected = simulated_ngram_sizes(6, 3, 20_000)
    assert np.abs(sizes / sizes.sum() - expected).max() < 0.02


def simulated_ngram_sizes(wanted, max_size, trials):
    """Shares of sizes by _masking_ngrams where there is always room beside one another."""
    random = np.random.default_rng(0)
    weights = 1 / np.arange(1, max_size + 1)
    sizes = np.zeros(max_size)
    for _ in range(trials):
        left = wanted
        while left:
            size = random.choice(max_size, p=weights / weights.sum()) + 1
            if size <= left:
                sizes[size - 1] += 1
                left -= size
    return sizes / sizes.sum()


@pytest.mark.slow
def test_spans_have_the_mean_length_of_spanbert():
    """Published: 3.8 words on average. One span a row, so none touch; the row's end cuts some."""
    ids, totals = single_tokens(6000, 512)
    rules = masking_rules(
        VOCAB, max_seq_length=512, max_predictions_per_seq=10, masked_lm_prob=0.15, masking="span"
    )
    result = masked(ids, totals, rules, 10)
    first = np.array([run[0] for run in map(np.atleast_1d, result.positions)])
    assert (result.counts == 10).all() and len(set(first)) > 100
    weights = 0.2 * 0.8 ** np.arange(10)
    mean = (weights * np.arange(1, 11)).sum() / weights.sum()
    assert mean == pytest.approx(3.8, abs=0.01)
    expected = simulated_span_lengths(10, weights / weights.sum(), 20_000)
    assert lone_groups(result.positions, 10).mean() == pytest.approx(expected, rel=0.03)


def simulated_span_lengths(wanted, weights, trials):
    """Mean span where the last one of a row is cut to the targets that are left."""
    random = np.random.default_rng(0)
    spans = 0
    for _ in range(trials):
        left = wanted
        while left > 0:
            left -= random.choice(10, p=weights) + 1
            spans += 1
    return wanted * trials / spans


@pytest.mark.parametrize("masking", ["ngram", "span"])
def test_tokens_that_are_masked_together_share_a_replacement(masking):
    ids, totals = single_tokens(3000)
    rules = masking_rules(
        VOCAB, max_seq_length=128, max_predictions_per_seq=20, masked_lm_prob=0.15,
        masking=masking, max_ngram_size=8,
    )  # fmt: skip
    result = masked(ids, totals, rules)
    now = np.take_along_axis(result.ids, result.positions, 1)
    draws = np.where(now == MASK, 0, np.where(now == result.target_ids, 1, 2))
    live = np.arange(20) < result.counts[:, None]
    assert np.bincount(draws[live]) / live.sum() == pytest.approx([0.8, 0.1, 0.1], abs=0.02)
    neighbors = (np.diff(result.positions, axis=1) == 1) & live[:, 1:]
    equal = (draws[:, 1:] == draws[:, :-1])[neighbors].mean()
    # By chance draws agree at 0.66; n-grams side by side have draws of their own.
    assert equal > (0.995 if masking == "span" else 0.85)


def test_random_tokens_follow_the_counts_of_the_corpus():
    ids, totals = rows_of([(62, 63)] * 4000, 128)
    counts = np.zeros(len(VOCAB), np.int64)
    counts[[10, 20, 30]] = 1, 2, 7
    counts[[MASK, VOCAB.index("[UNK]")]] = 1000
    rules = masking_rules(
        VOCAB, max_seq_length=128, max_predictions_per_seq=20, masked_lm_prob=0.15,
        token_counts=counts,
    )  # fmt: skip
    result = masked(ids, totals, rules)
    now = np.take_along_axis(result.ids, result.positions, 1)[:, :19]
    drawn = now[(now != MASK) & (now != result.target_ids[:, :19])]
    shares = np.bincount(drawn, minlength=len(VOCAB)) / len(drawn)
    assert shares[[10, 20, 30]].sum() == 1.0
    assert shares[[10, 20, 30]] == pytest.approx([0.1, 0.2, 0.7], abs=0.02)


def test_given_word_starts_take_the_place_of_the_vocabularys():
    ids, totals = single_tokens(200, 40)
    starts = np.tile(np.arange(40) % 4 == 0, (200, 1))
    rules = rules_for(max_seq_length=40, prob=0.3, whole_words=True)
    keys = np.arange(200, dtype=np.uint64)
    result = mask_rows(ids, totals, keys, rules, max_predictions_per_seq=20, word_starts=starts)
    assert (result.counts == 12).all()
    assert (np.diff(result.positions[:, :12].reshape(200, 3, 4), axis=2) == 1).all()
    assert (result.positions[:, :12:4] % 4 == 0).all()


@pytest.mark.parametrize(
    ("replacements", "fractions"),
    [
        ((1.0, 0.0, 0.0), (1.0, 0.0)),
        ((0.0, 0.0, 1.0), (0.0, 1.0)),
        ((0.0, 1.0, 0.0), (0.0, 0.0)),
        ((0.5, 0.2, 0.3), (0.5, 0.3)),
    ],
)
def test_targets_are_replaced_as_often_as_asked(replacements, fractions):
    """Random tokens are the original one in 1 of 500 cases."""
    ids, totals = rows_of([(60, 60)] * 200, 128)
    rules = masking_rules(
        VOCAB,
        max_seq_length=128,
        max_predictions_per_seq=40,
        masked_lm_prob=0.3,
        mask_replacements=replacements,
    )
    result = masked(ids, totals, rules, 40)
    found = np.take_along_axis(result.ids, result.positions, axis=1)
    is_target = np.arange(40) < result.counts[:, None]
    is_mask = (found == MASK)[is_target]
    is_kept = (found == result.target_ids)[is_target]
    assert is_mask.mean() == pytest.approx(fractions[0], abs=0.02)
    assert is_kept.mean() == pytest.approx(fractions[1], abs=0.02)


def test_other_replacements_choose_the_same_targets():
    ids, totals = rows_of([(20, 30), (40, 5)], 64)
    usual = masked(ids, totals, rules_for(max_seq_length=64))
    rules = masking_rules(
        VOCAB,
        max_seq_length=64,
        max_predictions_per_seq=20,
        masked_lm_prob=0.15,
        mask_replacements=(0.8, 0.1, 0.1),
    )
    same = masked(ids, totals, rules)
    np.testing.assert_array_equal(same.ids, usual.ids)
    np.testing.assert_array_equal(same.positions, usual.positions)


def test_rows_have_as_many_targets_as_they_are_given():
    ids, totals = rows_of([(20, 30)] * 4, 64)
    given_targets = np.array([1, 5, 3, 9], np.int32)
    keys = np.arange(4, dtype=np.uint64)
    result = mask_rows(
        ids,
        totals,
        keys,
        rules_for(max_seq_length=64),
        max_predictions_per_seq=20,
        targets=given_targets,
    )
    assert result.counts.tolist() == given_targets.tolist()

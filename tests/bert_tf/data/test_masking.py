"""Masked-LM targets: the reference's numbers, and properties on any rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.data.masking import mask_rows, masking_rules, predictions_by_length

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Specials in odd places, as in Google's vocabularies.
VOCAB = ["[PAD]", "the", "[UNK]", "[CLS]", "##a", "[SEP]", "[MASK]"] + [
    f"##{i}" if i % 3 == 0 else str(i) for i in range(500)
]
PAD, CLS, SEP, MASK = (VOCAB.index(piece) for piece in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
SPECIAL_IDS = {VOCAB.index(piece) for piece in SPECIALS}


def rules_for(*, max_seq_length=128, max_predictions=20, prob=0.15, whole_words=False):
    return masking_rules(
        VOCAB,
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions,
        masked_lm_prob=prob,
        whole_word_mask=whole_words,
    )


def rows_of(lengths: list[tuple[int, int]], width: int, seed: int = 0):
    """Rows `[CLS] a [SEP] b [SEP]` of ordinary pieces with a and b of these lengths."""
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


@settings(max_examples=150, deadline=None)
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


def test_whole_words_are_chosen_as_often_as_single_pieces():
    ids, totals = rows_of([(62, 63)] * 500, 128)
    result = masked(ids, totals, rules_for(whole_words=True))
    assert result.counts.mean() > 18.5


def test_the_shares_of_masks_random_pieces_and_kept_ones():
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

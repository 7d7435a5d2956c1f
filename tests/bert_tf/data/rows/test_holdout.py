"""Rows that are held out, and the folds of rows, follow from their texts alone."""

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.rows.holdout import RowGroups, held_out_rows, stratified_folds

ROWS = st.lists(st.tuples(st.text(max_size=3), st.sampled_from("abc")), min_size=1, max_size=60)
FRACTIONS = st.floats(0.05, 0.95)


def held_out(rows, fraction):
    keys, classes = zip(*rows, strict=True)
    return held_out_rows(RowGroups(keys=keys, classes=classes), fraction)


@given(ROWS, FRACTIONS, st.randoms())
def test_the_order_of_rows_does_not_matter(rows, fraction, random):
    shuffled = random.sample(rows, len(rows))
    for one, other in ((rows, shuffled), (shuffled, rows)):
        chosen = {row for row, is_out in zip(one, held_out(one, fraction), strict=True) if is_out}
        found = held_out(other, fraction)
        assert [row in chosen for row in other] == found.tolist()


@given(ROWS, FRACTIONS)
def test_equal_texts_stay_together(rows, fraction):
    chosen = held_out(rows, fraction)
    sides = {}
    for (key, _), is_out in zip(rows, chosen, strict=True):
        assert sides.setdefault(key, is_out) == is_out


@given(ROWS, FRACTIONS, st.integers(0, 70))
def test_the_next_hashes_fill_up_what_a_small_file_lacks(rows, fraction, least):
    rows = [(f"{name}{key}", name) for key, name in rows]
    keys, classes = zip(*rows, strict=True)
    groups = RowGroups(keys=keys, classes=classes)
    before, chosen = held_out(rows, fraction), held_out_rows(groups, fraction, least=least)
    assert not (before & ~chosen).any()
    assert set(classes) == {
        name for name, is_out in zip(classes, chosen, strict=True) if not is_out
    }
    left = {row for row, is_out in zip(rows, chosen, strict=True) if not is_out}
    if before.sum() >= least:
        assert (chosen == before).all()
    elif chosen.sum() < least:
        assert len(left) == len({name for _, name in left}), "a key of every class is left"


@pytest.mark.parametrize("rows", [40, 50, 60, 80])
def test_no_file_is_too_small_by_chance(rows):
    for file in range(100):
        keys = [f"text {file} {row}" for row in range(rows)]
        groups = RowGroups(keys=keys, classes=[str(row % 2) for row in range(rows)])
        assert held_out_rows(groups, 0.1, least=5).sum() >= 5


@given(ROWS, FRACTIONS)
def test_every_class_can_be_learned_and_measured(rows, fraction):
    rows = [(f"{name}{key}", name) for key, name in rows]  # a text has one class
    chosen = held_out(rows, fraction)
    for name in {name for _, name in rows}:
        keys = {key for key, other in rows if other == name}
        out = [is_out for (_, other), is_out in zip(rows, chosen, strict=True) if other == name]
        assert not all(out)
        if len(keys) >= max(2, 0.5 / fraction):
            assert any(out)


@given(ROWS, ROWS, FRACTIONS)
def test_more_rows_change_no_more_than_a_key_of_a_class(rows, more, fraction):
    rows = [(f"{name}{key}", name) for key, name in rows]
    more = [(f"{name}{key}", name) for key, name in more]
    before, after = held_out(rows, fraction), held_out([*rows, *more], fraction)[: len(rows)]
    changed = {row for row, differs in zip(rows, before != after, strict=True) if differs}
    assert len(changed) == len({name for _, name in changed})


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("classes", [None, ("x",) * 9_000 + ("y",) * 1_000])
def test_the_fraction_is_kept_in_every_class(fraction, classes):
    keys = [f"text {number}" for number in range(10_000)]
    chosen = held_out_rows(RowGroups(keys=keys, classes=classes), fraction)
    for part in (chosen[:9_000], chosen[9_000:]):
        deviation = np.sqrt(fraction * (1 - fraction) / len(part))
        assert abs(part.mean() - fraction) < 4 * deviation


KEYED_ROWS = st.lists(
    st.tuples(st.sampled_from("abcdefghijklmnop"), st.sampled_from("xyz")), min_size=1, max_size=60
)


def folds_of(rows, folds):
    keys, classes = zip(*rows, strict=True)
    return stratified_folds(RowGroups(keys=keys, classes=classes), folds).tolist()


@given(rows=KEYED_ROWS, folds=st.integers(2, 5), order=st.randoms(use_true_random=False))
def test_equal_keys_are_in_one_fold_whatever_their_order(rows, folds, order):
    found = dict(zip([key for key, _ in rows], folds_of(rows, folds), strict=True))
    assert folds_of(rows, folds) == [found[key] for key, _ in rows]
    assert set(found.values()) <= set(range(folds))
    shuffled = order.sample(rows, len(rows))
    assert folds_of(shuffled, folds) == [found[key] for key, _ in shuffled]


@given(counts=st.tuples(*[st.integers(1, 30)] * 3), folds=st.integers(2, 5))
def test_every_class_and_the_whole_are_spread_evenly(counts, folds):
    classes = [name for name, count in zip("xyz", counts, strict=True) for _ in range(count)]
    found = folds_of([(str(number), name) for number, name in enumerate(classes)], folds)
    for chosen in ("x", "y", "z", "xyz"):
        sizes = collections.Counter(
            fold for fold, name in zip(found, classes, strict=True) if name in chosen
        )
        counted = [sizes[fold] for fold in range(folds)]
        assert max(counted) - min(counted) <= 1


def test_rows_without_classes_are_spread_evenly():
    groups = RowGroups(keys=[str(number) for number in range(9)])
    assert sorted(stratified_folds(groups, 3).tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]

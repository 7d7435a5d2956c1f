"""Rows to folds: equal keys together, classes spread evenly, the same in any order."""

import collections

from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.rows.holdout import RowGroups, stratified_folds

ROWS = st.lists(
    st.tuples(st.sampled_from("abcdefghijklmnop"), st.sampled_from("xyz")), min_size=1, max_size=60
)


def folds_of(rows, folds):
    keys, classes = zip(*rows, strict=True)
    return stratified_folds(RowGroups(keys=keys, classes=classes), folds).tolist()


@given(rows=ROWS, folds=st.integers(2, 5), order=st.randoms(use_true_random=False))
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

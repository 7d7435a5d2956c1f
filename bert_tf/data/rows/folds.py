"""Rows to the folds of a cross-validation, by what they hold: the same on every run."""

from __future__ import annotations

import collections
import hashlib

import numpy as np

from bert_tf.data.rows.holdout import RowGroups

_KEY = b"folds"  # splits drawn elsewhere by hashes of the same texts are independent


def stratified_folds(groups: RowGroups, folds: int) -> np.ndarray:
    """The fold of each row, from 0.

    The keys of every class are spread evenly, in the order of their hashes. The class of a key is
    the first, in order of text, of its rows'.

    Args:
        groups: keys, whose rows stay together, and classes.
        folds: at least 2.

    Returns:
        int64 [rows].
    """
    classes = groups.classes if groups.classes is not None else [""] * len(groups.keys)
    class_of: dict[str, str] = {}
    for key, name in zip(groups.keys, classes, strict=True):
        class_of[key] = min(name, class_of.get(key, name))
    by_class = collections.defaultdict(list)
    for key, name in class_of.items():
        by_class[name].append(key)
    ordered = (key for name in sorted(by_class) for key in sorted(by_class[name], key=_digest))
    fold_of = {key: number % folds for number, key in enumerate(ordered)}
    return np.array([fold_of[key] for key in groups.keys], np.int64)


def _digest(key: str) -> bytes:
    return hashlib.blake2b(key.encode("utf-8"), digest_size=8, key=_KEY).digest()

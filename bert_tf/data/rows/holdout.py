"""Evaluation rows and cross-validation folds: functions of the texts of rows, not their order."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import numpy as np

_KEY = b"evaluation rows"  # splits drawn elsewhere by hashes of the same texts are independent
_RANGE = 2**64


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowGroups:
    keys: Sequence[str]  # of each row; rows with equal keys stay together
    classes: Sequence[str] | None = None  # of each row, to be on both sides; None without


def held_out_rows(groups: RowGroups, fraction: float, *, least: int = 0) -> np.ndarray:
    """Choose about `fraction` of the rows of each class by a hash of the keys: bool [rows].

    A row is held out if the hash of its key, as a fraction of all hashes, is below `fraction`: the
    same rows whatever the seed, their order, and the other rows. Classes of few keys are
    exceptions: one that would be held out as a whole keeps the key with the highest hash in
    training; of one with two keys and at least `0.5 / fraction` that would not be held out at all,
    the lowest hash is. Where that makes fewer than `least` rows, the next hashes follow, as long as
    every class keeps one in training. The class of a key is the first, in order of text, of its
    rows'.
    """
    digests = b"".join(_digest(key, _KEY) for key in groups.keys)
    hashes = np.frombuffer(digests, "<u8").astype(np.uint64)
    names = groups.classes if groups.classes is not None else [""] * len(hashes)
    _, classes = np.unique(np.asarray(names, str), return_inverse=True)
    order = np.lexsort((classes, hashes))
    keys, firsts, key_of_row = np.unique(hashes[order], return_index=True, return_inverse=True)
    class_of_key = classes[order][firsts]
    chosen = keys < np.uint64(min(round(fraction * _RANGE), _RANGE - 1))
    for number in range(len(np.unique(classes))):
        of_class = np.flatnonzero(class_of_key == number)
        if not len(of_class):
            continue
        if chosen[of_class].all():
            chosen[of_class[-1]] = False
        elif len(of_class) >= max(2, 0.5 / fraction) and not chosen[of_class].any():
            chosen[of_class[0]] = True
    _add_lowest(chosen, class_of_key, np.bincount(key_of_row, minlength=len(keys)), least)
    held_out = np.empty(len(hashes), bool)
    held_out[order] = chosen[key_of_row]
    return held_out


def _add_lowest(
    chosen: np.ndarray, class_of_key: np.ndarray, rows_of_key: np.ndarray, least: int
) -> None:
    left = np.bincount(class_of_key[~chosen], minlength=class_of_key.max(initial=0) + 1)
    missing = least - rows_of_key[chosen].sum()
    for key in np.flatnonzero(~chosen):
        if missing <= 0:
            return
        if left[class_of_key[key]] > 1:
            chosen[key] = True
            left[class_of_key[key]] -= 1
            missing -= rows_of_key[key]


_FOLDS_KEY = b"folds"  # splits drawn elsewhere by hashes of the same texts are independent


def stratified_folds(groups: RowGroups, folds: int) -> np.ndarray:
    """Spread the keys of each class as in `held_out_rows` evenly over folds: int64 [rows]."""
    classes = groups.classes if groups.classes is not None else [""] * len(groups.keys)
    class_of: dict[str, str] = {}
    for key, name in zip(groups.keys, classes, strict=True):
        class_of[key] = min(name, class_of.get(key, name))
    by_class = collections.defaultdict(list)
    for key, name in class_of.items():
        by_class[name].append(key)
    by_digest = functools.partial(_digest, key=_FOLDS_KEY)
    ordered = (text for name in sorted(by_class) for text in sorted(by_class[name], key=by_digest))
    fold_of = {key: number % folds for number, key in enumerate(ordered)}
    return np.array([fold_of[key] for key in groups.keys], np.int64)


def _digest(text: str, key: bytes) -> bytes:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=key).digest()

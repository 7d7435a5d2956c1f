"""Evaluation rows and cross-validation folds: functions of the rows' texts, not of their order."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import numpy as np

# Keys of the hash. Splits that are drawn elsewhere by hashes of the same texts are independent.
_KEY = b"evaluation rows"
_FOLDS_KEY = b"folds"
_RANGE = 2**64  # of hashes


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowGroups:
    """Rules for separating rows with labels.

    Attributes:
        keys: key of each row; rows with equal keys stay together.
        classes: class of each row; both sides get rows of each class if possible. None if rows have
            no classes.
    """

    keys: Sequence[str]
    classes: Sequence[str] | None = None


def held_out_rows(groups: RowGroups, fraction: float, *, least: int = 0) -> np.ndarray:
    """Choose about `fraction` of the rows of each class by a hash of their keys.

    A row is held out if the hash of its key, as a fraction of all hashes, is below `fraction`. So
    the choice does not depend on a seed, on the order of rows, or on other rows.

    Classes of few keys are exceptions. If all keys of a class would be held out, the one with the
    highest hash stays in training. If none would, and the class has at least two keys and at least
    `0.5 / fraction`, the one with the lowest hash is held out.

    Args:
        groups: keys and classes of the rows. The class of a key is the alphabetically first class
            of its rows.
        fraction: fraction of the rows to hold out.
        least: least number of rows; if there are fewer, the keys with the next hashes follow, as
            long as every class keeps one in training.

    Returns:
        bool [rows].
    """
    digests = b"".join(_digest(key, _KEY) for key in groups.keys)
    hashes = np.frombuffer(digests, "<u8").astype(np.uint64)
    names = groups.classes if groups.classes is not None else [""] * len(hashes)
    _, classes = np.unique(np.asarray(names, str), return_inverse=True)
    # Sorted by hash; within a key the first class comes first, and becomes the class of the key.
    order = np.lexsort((classes, hashes))
    keys, firsts, key_of_row = np.unique(hashes[order], return_index=True, return_inverse=True)
    class_of_key = classes[order][firsts]
    chosen = keys < np.uint64(min(round(fraction * _RANGE), _RANGE - 1))
    # `keys` are sorted, so the first and last of a class have its lowest and highest hash.
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
    """Choose further keys in the order of their hashes until `least` rows are chosen.

    Args:
        chosen: bool [keys], changed in place.
        class_of_key: int [keys].
        rows_of_key: int [keys], number of rows.
        least: number of rows.
    """
    left = np.bincount(class_of_key[~chosen], minlength=class_of_key.max(initial=0) + 1)
    missing = least - rows_of_key[chosen].sum()
    for key in np.flatnonzero(~chosen):
        if missing <= 0:
            return
        if left[class_of_key[key]] > 1:
            chosen[key] = True
            left[class_of_key[key]] -= 1
            missing -= rows_of_key[key]


def stratified_folds(groups: RowGroups, folds: int) -> np.ndarray:
    """Return the fold of each row, from 0: int64 [rows].

    The keys are dealt out to the folds in turn, class by class (as `held_out_rows` defines it), and
    within a class in the order of their hashes.

    Args:
        groups: keys, whose rows stay together, and classes.
        folds: number of folds, at least 2.
    """
    classes = groups.classes if groups.classes is not None else [""] * len(groups.keys)
    class_of: dict[str, str] = {}
    for key, name in zip(groups.keys, classes, strict=True):
        class_of[key] = min(name, class_of.get(key, name))
    by_class = collections.defaultdict(list)
    for key, name in class_of.items():
        by_class[name].append(key)
    by_digest = functools.partial(_digest, key=_FOLDS_KEY)
    ordered: list[str] = []
    for name in sorted(by_class):
        ordered += sorted(by_class[name], key=by_digest)
    fold_of = {key: number % folds for number, key in enumerate(ordered)}
    return np.array([fold_of[key] for key in groups.keys], np.int64)


def _digest(text: str, key: bytes) -> bytes:
    """Return 8 bytes of a hash of a text; each `key` gives independent hashes."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=key).digest()

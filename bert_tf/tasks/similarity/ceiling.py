"""Vectors of a perfect model, and the reasons why even these have no perfect measure.

The cosine of scored pairs is a linear function of their score. Anchors of pairs and triplets get a
vector that is nearest to their positives. Faults remain only where the model reads texts alike,
because these have equal vectors: the cosine of such a pair is 1, and of such candidates none is
nearer than the other. A text that is an anchor and a candidate may have two vectors here, so the
ceiling of chains of pairs is somewhat too high. See `bert_tf.tasks.running.ceiling`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.tasks.base.ceiling import Cause, lost_tokens, sequence_keys

if TYPE_CHECKING:
    from bert_tf.tasks.base.task_data import TaskData

_LEAST_SPREAD = 1e-30  # avoids 0/0 for scores that are all equal
# Similarities of an anchor, before its norm: to itself, its most frequent positive, its others.
_OWN = 2.0
_FIRST = 1.0
_OTHER = 0.5


def scored_vectors(data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """Return a function from scored pairs, int [n], to a perfect model's vectors.

    Returns:
        A function to `embeddings`, float32 [n, 2, 2]: unit vectors in a plane, whose cosine is the
        score, scaled to -1 to 1.
    """
    scores = data.targets["score"].astype(np.float64)
    spread = max(float(np.ptp(scores)), _LEAST_SPREAD)
    cosines = 2 * (scores - scores.min()) / spread - 1
    first, second = _text_keys(data).T
    cosines = np.where(first == second, 1.0, cosines)
    vectors = np.zeros((len(scores), 2, 2), np.float32)
    vectors[:, 0, 0] = 1.0
    vectors[:, 1, 0] = cosines
    vectors[:, 1, 1] = np.sqrt(1.0 - np.square(cosines))
    return lambda chosen: {"embeddings": vectors[chosen]}


def matched_vectors(data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """Return a function from pairs or triplets, int [n], to a perfect model's vectors.

    Each candidate has a dimension of its own. An anchor points along that of its most frequent
    positive, less along those of its other positives, and against those of its negatives. An anchor
    that is also a candidate is nearest to itself, as for every model.

    Returns:
        A function to `embeddings`, float32 [n, texts, candidates].
    """
    keys = _text_keys(data)
    candidates, numbers = np.unique(keys[:, 1:], return_inverse=True)
    numbers = numbers.reshape(len(keys), -1)
    anchors, anchor_of_row = np.unique(keys[:, 0], return_inverse=True)
    matches = np.zeros((len(anchors), len(candidates)), np.float32)
    np.add.at(matches, (anchor_of_row, numbers[:, 0]), 1.0)
    np.subtract.at(matches, (anchor_of_row[:, None], numbers[:, 1:]), 1.0)
    of_anchors = _OTHER * np.sign(matches)
    of_anchors[np.arange(len(anchors)), matches.argmax(axis=1)] = _FIRST
    own = np.searchsorted(candidates, anchors)
    own = np.minimum(own, len(candidates) - 1)
    is_candidate = candidates[own] == anchors
    of_anchors[is_candidate, own[is_candidate]] = _OWN

    def outputs(chosen: np.ndarray) -> dict[str, np.ndarray]:
        vectors = np.zeros((len(chosen), keys.shape[1], len(candidates)), np.float32)
        vectors[:, 0] = of_anchors[anchor_of_row[chosen]]
        rows, columns = np.indices(numbers[chosen].shape)
        vectors[rows, columns + 1, numbers[chosen]] = 1.0
        return {"embeddings": vectors}

    return outputs


def score_causes(data: TaskData, flag: str) -> Iterator[Cause]:
    """Yield the reasons why scored pairs do not have the cosine of their score.

    Args:
        data: the pairs.
        flag: the option that cuts texts, with its value.
    """
    first, second = _text_keys(data).T
    scores = data.targets["score"]
    alike = (first == second) & (scores < scores.max())
    is_cut = lost_tokens(data) > 0
    yield Cause.of_rows(
        alike & is_cut,
        f"has two texts that read alike, once cut by {flag}, but not the highest score",
        f"raise {flag}",
        is_setting=True,
    )
    yield Cause.of_rows(
        alike & ~is_cut,
        "has two texts that read alike, but not the highest score",
        "correct the scores, or the columns of the texts",
    )


def match_causes(data: TaskData, text_ids: np.ndarray, flag: str) -> Iterator[Cause]:
    """Yield the reasons why positives are not the nearest candidates, one for each row.

    Args:
        data: the rows.
        text_ids: int [rows, texts], equal for equal texts.
        flag: the option that cuts texts, with its value.
    """
    keys = _text_keys(data)
    is_cut = lost_tokens(data) > 0
    negative = (keys[:, 2:] == keys[:, 1:2]).any(axis=1)
    positive = _read_like_another(keys[:, 1:], text_ids[:, 1:])[:, 0]
    anchor = _read_like_another(keys[:, :1], text_ids[:, :1])[:, 0]
    own = np.isin(keys[:, 0], keys[:, 1:])
    rest = np.ones(len(keys), bool)
    dropped = "start from a cased model, or one for the language of the texts"
    for rows, text, remedy, is_setting in (
        (
            (negative | positive | anchor) & is_cut,
            f"has texts that read like others, once cut by {flag}",
            f"raise {flag}",
            True,
        ),
        (negative, "has a negative that reads like its positive", "leave these rows out", False),
        (positive, "has a positive that reads like another candidate", dropped, False),
        (anchor, "has an anchor that reads like another one", dropped, False),
        (
            own,
            "has an anchor that is also a candidate, and nearest to itself",
            "compare runs on the same rows only, or keep such texts in one of the columns",
            False,
        ),
    ):
        yield Cause.of_rows(rest & rows, text, remedy, is_setting=is_setting)
        rest &= ~rows


def _text_keys(data: TaskData) -> np.ndarray:
    """Return a hash of the model's input for each text, uint64 [rows, texts]."""
    return sequence_keys(data.rows).reshape(len(data.rows), -1)


def _read_like_another(keys: np.ndarray, text_ids: np.ndarray) -> np.ndarray:
    """Return which texts have the key of another text, bool of the same shape.

    Args:
        keys: uint64 [rows, texts], equal for texts that the model reads alike.
        text_ids: int [rows, texts], equal for equal texts.
    """
    pairs, places = np.unique(
        np.stack([keys.ravel(), text_ids.ravel().astype(np.uint64)]), axis=1, return_inverse=True
    )
    _, groups, counts = np.unique(pairs[0], return_inverse=True, return_counts=True)
    return (counts[groups] > 1)[places.reshape(-1)].reshape(keys.shape)

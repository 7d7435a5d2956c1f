"""The losses of sentence embeddings, by their definitions in sentence-transformers; graph-safe."""

from __future__ import annotations

import tensorflow as tf

from bert_tf.layers.pooling import unit_vectors
from bert_tf.serving.graphs.similarity import cosines
from bert_tf.tasks.similarity.options import COSINE

_NO_CANDIDATE = -1e9  # a logit whose probability is 0
_SMALLEST_SQUARE = 1e-24  # below it a distance has no gradient


def ranking_logits(
    embeddings: tf.Tensor, text_ids: tf.Tensor, is_row: tf.Tensor, *, scale: float
) -> tf.Tensor:
    """Return logits of `MultipleNegativesRankingLoss` (Henderson et al. 2017, section 4.4).

    The candidates of each row are the positives of all rows, its own at the row's number, and then
    their negatives. Equal texts are one candidate, and none that is the anchor itself or matches it
    by any row is its negative (sentence-transformers' `NO_DUPLICATES`).

    Args:
        embeddings: float32 [rows, texts, hidden]: anchor, positive, any number of negatives.
        text_ids: int32 [rows, texts], equal for equal texts.
        is_row: bool [rows], false for rows that only fill up the batch.
        scale: factor of the cosines, the inverse of a temperature.

    Returns:
        float32 [rows, rows x (texts - 1)], -1e9 for texts that are no candidates.
    """
    unit = unit_vectors(embeddings)
    candidates = tf.reshape(tf.transpose(unit[:, 1:], [1, 0, 2]), [-1, unit.shape[-1]])
    scores = tf.matmul(unit[:, 0], candidates, transpose_b=True) * scale
    anchors = text_ids[:, 0]
    positives = text_ids[:, 1]
    ids = tf.reshape(tf.transpose(text_ids[:, 1:]), [-1])
    is_there = tf.tile(is_row, [tf.shape(text_ids)[1] - 1])
    same_anchor = (anchors[:, None] == anchors[None]) & is_row[None]
    is_positive = positives[:, None] == ids[None]
    # An anchor matches the positives of all rows with the same anchor, bool [rows, candidates].
    matches = tf.matmul(tf.cast(same_anchor, tf.float32), tf.cast(is_positive, tf.float32)) > 0
    # A candidate is repeated if an earlier one, below the diagonal, has the same text.
    same = tf.cast((ids[:, None] == ids[None]) & is_there[None], tf.float32)
    is_repeated = tf.reduce_sum(tf.linalg.band_part(same, -1, 0), axis=1) > 1
    is_candidate = (is_there & ~is_repeated)[None]
    is_negative = is_candidate & ~matches & (anchors[:, None] != ids[None])
    is_own = tf.range(tf.shape(ids)[0])[None] == tf.range(tf.shape(anchors)[0])[:, None]
    return tf.where(is_own | is_negative, scores, _NO_CANDIDATE)


def triplet_distances(embeddings: tf.Tensor, distance: str) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the distances of the positive and the negative from the anchor, float32 [rows] each.

    Args:
        embeddings: float32 [rows, 3, hidden]: anchor, positive and negative.
        distance: `cosine` (1 - cosine) or `euclidean`.
    """
    anchors, positives, negatives = tf.unstack(embeddings, num=3, axis=1)
    if distance == COSINE:
        return 1.0 - cosines(anchors, positives), 1.0 - cosines(anchors, negatives)
    return _euclidean_distance(anchors, positives), _euclidean_distance(anchors, negatives)


def cosent_loss(
    similarities: tf.Tensor, scores: tf.Tensor, is_row: tf.Tensor, *, scale: float
) -> tf.Tensor:
    """Return the CoSENT loss of a batch, float32 [] (Huang et al. 2024, "CoSENT").

    `log(1 + sum(exp(scale * (s(i) - s(j)))))` over all pairs of rows of which j has the higher
    score: only the order of the scores counts.

    Args:
        similarities: cosines s, float32 [rows].
        scores: float32 [rows].
        is_row: bool [rows], false for rows that only fill up the batch.
        scale: factor of the cosines.
    """
    differences = scale * (similarities[:, None] - similarities[None])
    is_pair = (scores[:, None] < scores[None]) & is_row[:, None] & is_row[None]
    terms = tf.where(is_pair, differences, _NO_CANDIDATE)
    return tf.reduce_logsumexp(tf.concat([[0.0], tf.reshape(terms, [-1])], axis=0))


def _euclidean_distance(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    squares = tf.reduce_sum(tf.square(first - second), axis=-1)
    return tf.sqrt(tf.maximum(squares, _SMALLEST_SQUARE))

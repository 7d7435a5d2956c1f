"""N-gram models of the text of pretraining records: the baseline that counting reaches.

Interpolated Kneser-Ney smoothing with one discount for each order (Chen and Goodman 1999, "An
Empirical Study of Smoothing Techniques for Language Modeling", section 3), over the word pieces of
the records, so that the model reads the same tokens as a masked LM of these records:

    p(w | u v) = max(c(u v w) - D, 0) / c(u v) + D N(u v) / c(u v) p(w | v)

c counts occurrences in the highest order, and the different words before in lower ones; N(u v) is
the number of different words after; D = n1 / (n1 + 2 n2), of the numbers of n-grams seen once and
twice (1/2 if none was seen once). Below single words everything is as likely (1 / vocabulary).

Each order is two sorted arrays: n-grams as numbers in base V, and their counts. An n-gram's history
is its number divided by V, and the n-gram without its first word is the rest by V ** (n - 1);
so everything is a few calls of NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.parsing import parse_unmasked_records
from bert_tf.data.text.vocab_file import read_vocab

_DISCOUNT = 0.5  # of an order whose n-grams are all frequent: unseen ones stay possible


def unmasked_ids(data: PretrainingData) -> np.ndarray:
    """Read the training records of unmasked data.

    Returns:
        int32 [records, length]: `[CLS] text [SEP]`, padded with 0.
    """
    if not data.is_dynamic:
        sys.exit(f"error: {data.directory}: is masked; this needs records with masking: dynamic")
    sep_id = read_vocab(Path(data.directory) / "vocab.txt").index("[SEP]")
    ids = []
    compression = "GZIP" if data.compression == "gzip" else ""
    for path in data.paths("train"):
        records = tf.data.TFRecordDataset(path, compression_type=compression)
        serialized = [record.numpy() for record in records]
        ids.append(parse_unmasked_records(serialized, data, sep_id=sep_id).ids)
    return np.concatenate(ids)


@dataclass(frozen=True)
class _Order:
    """N-grams of one order.

    Attributes:
        keys: int64 [n-grams], ascending: the n-gram as a number in base V.
        counts: int64 [n-grams].
        histories: int64 [histories], ascending: the n-grams without their last word.
        totals: int64 [histories], sums of the counts.
        followers: int64 [histories], numbers of different last words.
        discount: D.
    """

    keys: np.ndarray
    counts: np.ndarray
    histories: np.ndarray
    totals: np.ndarray
    followers: np.ndarray
    discount: float

    @classmethod
    def of(cls, keys: np.ndarray, counts: np.ndarray, vocab_size: int) -> _Order:
        """Return an order of ascending n-grams."""
        histories, starts, followers = np.unique(
            keys // vocab_size, return_index=True, return_counts=True
        )
        once = np.count_nonzero(counts == 1)
        twice = np.count_nonzero(counts == 2)
        return cls(
            keys=keys,
            counts=counts,
            histories=histories,
            totals=np.add.reduceat(counts, starts),
            followers=followers,
            discount=once / (once + 2 * twice) if once else _DISCOUNT,
        )

    def probabilities(self, keys: np.ndarray, vocab_size: int, lower: np.ndarray) -> np.ndarray:
        """Return p(w | history) of n-grams, float64, given those of the order below."""
        counts = _looked_up(keys, self.keys, self.counts)
        histories = keys // vocab_size
        totals = _looked_up(histories, self.histories, self.totals)
        followers = _looked_up(histories, self.histories, self.followers)
        seen = np.maximum(counts - self.discount, 0) + self.discount * followers * lower
        return np.where(totals > 0, seen / np.maximum(totals, 1), lower)


def _looked_up(keys: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values of keys, 0 for those that are not known (ascending)."""
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[places] == keys, values[places], 0)


class NgramModel:
    """An interpolated Kneser-Ney model of word pieces.

    Args:
        ids: pieces of the text in order, int [tokens].
        vocab_size: number of different pieces; its power `order` must fit into 63 bits.
        order: 1 for words by themselves, 3 for trigrams.
    """

    def __init__(self, ids: np.ndarray, *, vocab_size: int, order: int):
        self._vocab_size = vocab_size
        self._order = order
        keys, counts = np.unique(self._grams(ids, order), return_counts=True)
        self._orders = [_Order.of(keys, counts, vocab_size)]
        for below in range(order - 1, 0, -1):
            keys, counts = np.unique(keys % vocab_size**below, return_counts=True)
            self._orders.append(_Order.of(keys, counts, vocab_size))

    def _grams(self, ids: np.ndarray, order: int) -> np.ndarray:
        """Return all n-grams of a text as numbers, int64 [tokens - order + 1]."""
        windows = np.lib.stride_tricks.sliding_window_view(ids.astype(np.int64), order)
        return windows @ self._vocab_size ** np.arange(order - 1, -1, -1, dtype=np.int64)

    def probabilities(self, ids: np.ndarray) -> np.ndarray:
        """Return the probability of each piece after the `order - 1` before it.

        Args:
            ids: int [tokens].

        Returns:
            float64 [tokens - order + 1].
        """
        grams = self._grams(ids, self._order)
        found = np.full(len(grams), 1 / self._vocab_size)
        for below, order in enumerate(reversed(self._orders), start=1):
            found = order.probabilities(grams % self._vocab_size**below, self._vocab_size, found)
        return found

    def likelihoods(self, texts: Iterable[np.ndarray], history: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each text in nats, after `order - 1` pieces of history."""
        start = history[len(history) - (self._order - 1) :]
        return np.array(
            [np.log(self.probabilities(np.concatenate([start, ids]))).sum() for ids in texts]
        )

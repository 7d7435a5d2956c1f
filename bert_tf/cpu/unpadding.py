"""The tokens of padded rows as one long row without the padding, which costs as much as text; only
attention needs rows (Zeng et al. 2022, "Boosting Distributed Training Performance of the Unpadded
BERT Model").
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

# oneDNN prepares products anew for every number of tokens, which takes as long as some of them. So
# there are 32 numbers between a power of two and the next, and multiples of this below 512.
_LEAST_MULTIPLE = 8
_POWERS = tuple(2**power for power in range(9, 31))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unpadded:
    """Places of tokens in one row without padding, and back.

    Attributes:
        numbers: int32 [batch, length], of each token in the long row; -1 for padding left out.
        places: int32 [tokens], of each token in the padded rows one after the other.
    """

    numbers: tf.Tensor
    places: tf.Tensor

    @property
    def firsts(self) -> tf.Tensor:
        """Numbers of the rows' first tokens, int32 [1, batch]."""
        return self.numbers[:, 0][None]

    @property
    def position_ids(self) -> tf.Tensor:
        """Place of each token in its padded row, int32 [1, tokens]."""
        return (self.places % tf.shape(self.numbers)[1])[None]

    def take(self, values: Any) -> tf.Tensor:
        """[batch, length] to [1, tokens]."""
        return tf.gather(tf.reshape(values, [-1]), self.places)[None]

    def padded(self, hidden: tf.Tensor) -> tf.Tensor:
        """[1, tokens, hidden] to [batch, length, hidden], 0 on padding that was left out."""
        from bert_tf.cpu.kernels.graph import padded_rows

        return padded_rows(hidden, self.numbers)


def unpadded(mask: Any) -> Unpadded:
    """Numbers the tokens of padded rows, in their order; `mask` is [batch, length], true on tokens.

    Among them are the first place of every row, even of one of padding only, and padding up to a
    round number: a multiple of 8, from 1,024 on of 32, and so on, where rows have so many places.
    """
    is_token = tf.cast(mask, tf.bool)
    is_token = tf.concat([tf.ones_like(is_token[:, :1]), is_token[:, 1:]], axis=1)
    flat = tf.reshape(is_token, [-1])
    tokens = tf.math.count_nonzero(flat, dtype=tf.int32)
    doublings = tf.math.count_nonzero(tokens >= tf.constant(_POWERS), dtype=tf.int32)
    missing = -tokens % tf.bitwise.left_shift(_LEAST_MULTIPLE, doublings)
    is_taken = flat | (tf.cumsum(tf.cast(~flat, tf.int32)) <= missing)
    numbers = tf.where(is_taken, tf.cumsum(tf.cast(is_taken, tf.int32)) - 1, -1)
    return Unpadded(
        numbers=tf.reshape(numbers, tf.shape(mask)),
        places=tf.cast(tf.where(is_taken)[:, 0], tf.int32),
    )

"""Explanations of a prediction: sums of logits, and the words that share them.

`HostTask.targets` chooses the sums; `bert_tf.tasks.explaining` computes the shares of the words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

Outputs = Mapping[str, np.ndarray]


class Word(NamedTuple):
    """A word of a row.

    Attributes:
        input: name of the model's input that contains it.
        item: number of the text in an input that is a list of texts, otherwise None.
        text: its characters.
        begin, end: its place in the text, in code points.
    """

    input: str
    item: int | None
    text: str
    begin: int
    end: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlacedRow:
    """A row as sequences, and the words of its texts.

    Attributes:
        rows: its `HostRows`.
        words: its words.
        word_of: int64 [tokens of all sequences], number of each token's word, -1 for special ones.
    """

    rows: Any
    words: list[Word]
    word_of: np.ndarray

    def words_at(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the number of the word at each place of padded sequences.

        Args:
            shape: shape of an output, which begins with [sequences, length].

        Returns:
            int64 [sequences, length], -1 for special tokens and padding.
        """
        words = np.full(shape[:2], -1, np.int64)
        offsets = self.rows.sequences.offsets
        for sequence in range(shape[0]):
            numbers = self.word_of[offsets[sequence] : offsets[sequence + 1]]
            words[sequence, : len(numbers)] = numbers
        return words


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A number that the words of a row share.

    Attributes:
        name: the label, the value, or the text of the span.
        weights: float32 like the outputs by their names; the number is the sum of their product.
    """

    name: str
    weights: dict[str, np.ndarray]

    def value(self, outputs: Outputs) -> float:
        """Return the number for outputs of the row's sequences."""
        return float(sum((outputs[name] * weight).sum() for name, weight in self.weights.items()))


def logit_target(logits: np.ndarray, place: int, name: str) -> Target:
    """Return a logit of a row, the mean over its windows, as a target."""
    weights = np.zeros_like(logits, np.float32)
    weights[:, place] = 1.0 / len(logits)
    return Target(name=name, weights={"logits": weights})

"""Trains only the word embeddings that the rows of a fine-tuning have.

The embeddings of a word that no row has get no gradient, yet the optimizer would read and write
them, and their moments, at every step: with 30,522 words they are half of a small BERT, and a
quarter of BERT-base. So the model is built for the words of the rows, and the others are put back
where it is written. These keep their values, without the decay of 1e-4 or so that they would have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from bert_tf.config.bert import BertConfig
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.weights.model_directory import ModelDirectory
from bert_tf.weights.tensor_files import WORD_EMBEDDINGS


class VocabularySubset:
    """Some entries of a vocabulary, numbered anew in the same order.

    Args:
        directory: the whole model.
        ids: int arrays of any shape with the ids that must be there; those of the special tokens
            are too.

    Attributes:
        directory: the model with these entries alone.
    """

    def __init__(self, directory: ModelDirectory, ids: Iterable[np.ndarray]):
        words = directory.tensors.get(WORD_EMBEDDINGS)
        is_kept = np.zeros(len(directory.vocab), np.bool_)
        is_kept[[directory.vocab.index(token) for token in SPECIAL_TOKENS]] = True
        for used in ids:
            is_kept[used] = True
        if words is None or len(words) != len(is_kept):
            # Left as they are, for whoever loads them to refuse.
            is_kept[:] = True
            tensors = directory.tensors
        else:
            self._others = words[~is_kept]
            tensors = _WithWords(directory.tensors, words[is_kept])
        self._is_kept = is_kept
        self._numbers = np.cumsum(is_kept, dtype=np.int32) - 1
        kept = np.flatnonzero(is_kept)
        self.directory = dataclasses.replace(
            directory,
            config=dataclasses.replace(directory.config, vocab_size=len(kept)),
            vocab=[directory.vocab[index] for index in kept],
            tensors=tensors,
        )

    def numbers(self, ids: npt.ArrayLike) -> np.ndarray:
        """Ids of the whole vocabulary as ids of the subset, int32."""
        return self._numbers[np.asarray(ids)]

    def whole(
        self, config: BertConfig, tensors: Mapping[str, np.ndarray]
    ) -> tuple[BertConfig, dict[str, np.ndarray]]:
        """A trained model's config and tensors with all entries of the vocabulary again.

        Args:
            config: with the `vocab_size` of the subset.
            tensors: float32 by HuggingFace's names.
        """
        trained = tensors[WORD_EMBEDDINGS]
        words = np.empty((len(self._is_kept), trained.shape[1]), np.float32)
        words[self._is_kept] = trained
        words[~self._is_kept] = self._others
        return dataclasses.replace(config, vocab_size=len(words)), {
            **tensors,
            WORD_EMBEDDINGS: words,
        }


class _WithWords(Mapping[str, np.ndarray]):
    """Tensors of a model, read when asked for, with other word embeddings."""

    def __init__(self, tensors: Mapping[str, np.ndarray], words: np.ndarray):
        self._tensors, self._words = tensors, words

    def __getitem__(self, name: str) -> np.ndarray:
        return self._words if name == WORD_EMBEDDINGS else self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

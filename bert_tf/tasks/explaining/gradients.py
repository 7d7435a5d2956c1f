"""Integrated gradients on word embeddings (Sundararajan et al. 2017), added up by word.

Between a row without words, in which every token is [MASK], and the row itself runs a straight line
of embeddings; special tokens, positions and segments stay. The share of a token is the integral of
the gradient of a logit along this line times the difference of its embeddings. So the shares add
up to the difference of the logits at both ends. The integral is a sum over Gauss-Legendre points,
as in captum; their number doubles until the sum is exact to half a percent.

Gradients need the weights. They are those of the exported folder (`model.safetensors`), in float32,
whichever engine has scored the rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.tasks.base.explained import PlacedRow, Target, Word
from bert_tf.tasks.explaining.words import check_explainable, place_words
from bert_tf.tasks.registry import served_task_from_settings
from bert_tf.training.arithmetic import keep_float32_exact
from bert_tf.weights.model_directory import load_all_weights, read_model_directory

FIRST_POINTS, MOST_POINTS = 16, 512
TOLERANCE = 0.005  # of the difference of the logits
_SMALL = 1e-3  # differences below this need not be exact to their own half percent
_TOKENS_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True, kw_only=True)
class Explanation:
    """The shares of a row's words in a logit.

    Attributes:
        target: what the logit is of.
        logit: its value.
        baseline: its value if all words are masked.
        words: the words that the model has read.
        shares: float64 [words], which add up to `logit` - `baseline`.
    """

    target: str
    logit: float
    baseline: float
    words: Sequence[Word]
    shares: np.ndarray

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as rows have it; `item` only for texts of a list."""
        words = [
            {
                "input": word.input,
                **({} if word.item is None else {"item": word.item}),
                "word": word.text,
                "start": word.begin,
                "end": word.end,
                "share": round(share, 6),
            }
            for word, share in zip(self.words, self.shares.tolist(), strict=True)
        ]
        numbers = {"logit": round(self.logit, 6), "baseline": round(self.baseline, 6)}
        return {"target": self.target, **numbers, "words": words}


class _GivenVectors:
    """Stands in for the embeddings of an encoder, with vectors of words instead of ids."""

    def __init__(self, embeddings: Any):
        self.table = embeddings.word_embeddings
        self.vectors: tf.Tensor | None = None
        self._embeddings = embeddings

    def __call__(self, input_word_ids: Any, **inputs: Any) -> Any:
        return self._embeddings.of_words(self.vectors, **inputs)


class Explainer:
    """Explains the predictions of a model directory or an exported model.

    Args:
        folder: the model.

    Raises:
        UsageError: it has no weights, or its task is not explained.
        InputError: it is damaged.
    """

    def __init__(self, folder: str | Path):
        check_explainable(folder)
        directory = read_model_directory(folder)
        assert directory.task is not None
        keep_float32_exact()
        self.task = served_task_from_settings(directory.task, str(folder))
        self._host = self.task.host()
        self._tokenizer = HostTokenizer(directory.vocab, lowercase=directory.lowercase)
        self._model = self.task.build_model(directory.config, policy="float32")
        load_all_weights(self._model, directory)
        encoder = getattr(self._model, "encoder", self._model)
        self._embeddings = _GivenVectors(encoder.embeddings)
        encoder.embeddings = self._embeddings

    def explain(self, row: Mapping[str, Any]) -> list[Explanation]:
        """Explain the prediction of a row, given by its text or list of texts by input.

        Returns:
            An explanation for each label (`multilabel`), each entity (`tagging`), or a single one.
        """
        placed = place_words(self._host, self._tokenizer, row)
        sequences = placed.rows.sequences
        if not len(sequences):
            return []
        length = int(np.diff(sequences.offsets).max())
        batch = sequences.padded(
            np.arange(len(sequences)), length=length, pad_id=self._tokenizer.pad_id
        )
        batch |= {name: values.astype(np.int32) for name, values in placed.rows.inputs.items()}
        is_word = np.zeros(batch["input_mask"].shape, bool)
        is_word[batch["input_mask"] == 1] = placed.word_of >= 0
        table = self._embeddings.table
        vectors = tf.gather(table, batch["input_word_ids"]).numpy()
        masked = np.where(is_word[..., None], np.asarray(table[self._tokenizer.mask_id]), vectors)
        outputs = self._outputs(vectors, batch)
        columns = {name: [value] for name, value in row.items()}
        chosen = np.arange(len(sequences))
        reduced = self._host.reduce(placed.rows, chosen, outputs)
        predicted = self._host.predict(placed.rows, columns, reduced)
        of_row = {name: values[0] for name, values in predicted.items()}
        found = self._host.targets(placed, outputs, of_row)
        return [self._explained(each, placed, batch, vectors, masked) for each in found]

    def _outputs(self, vectors: np.ndarray, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        self._embeddings.vectors = tf.constant(vectors)
        tensors = {name: tf.constant(values) for name, values in batch.items()}
        outputs = self.task.sequence_outputs(self._model, tensors)
        return {name: values.numpy() for name, values in outputs.items()}

    def _explained(
        self,
        target: Target,
        placed: PlacedRow,
        batch: Mapping[str, np.ndarray],
        vectors: np.ndarray,
        masked: np.ndarray,
    ) -> Explanation:
        logit, baseline = (target.value(self._outputs(each, batch)) for each in (vectors, masked))
        difference = logit - baseline
        allowed = TOLERANCE * max(abs(difference), _SMALL)
        points = FIRST_POINTS
        while True:
            shares = self._integrated(target, batch, vectors, masked, points)
            if abs(shares.sum() - difference) <= allowed or points >= MOST_POINTS:
                break
            points *= 2
        flat = shares[batch["input_mask"] == 1]
        is_word = placed.word_of >= 0
        of_words = np.bincount(
            placed.word_of[is_word], weights=flat[is_word], minlength=len(placed.words)
        )
        read = np.unique(placed.word_of[is_word])
        return Explanation(
            target=target.name,
            logit=logit,
            baseline=baseline,
            words=[placed.words[number] for number in read.tolist()],
            shares=of_words[read],
        )

    def _integrated(
        self,
        target: Target,
        batch: Mapping[str, np.ndarray],
        vectors: np.ndarray,
        masked: np.ndarray,
        points: int,
    ) -> np.ndarray:
        """Return the share of each token, float64 [sequences, length]."""
        places, weights = np.polynomial.legendre.leggauss(points)
        places, weights = (places + 1) / 2, weights / 2
        change = vectors - masked
        total = np.zeros(vectors.shape, np.float64)
        at_once = max(1, _TOKENS_AT_ONCE // (vectors.shape[0] * vectors.shape[1]))
        for first in range(0, points, at_once):
            chosen = slice(first, first + at_once)
            between = masked[None] + places[chosen, None, None, None] * change[None]
            gradients = self._gradients(target, batch, between.astype(np.float32))
            total += np.tensordot(weights[chosen], gradients, axes=1)
        return (total * change).sum(axis=-1)

    def _gradients(
        self, target: Target, batch: Mapping[str, np.ndarray], between: np.ndarray
    ) -> np.ndarray:
        """Return gradients at points between, float32 [points, sequences, length, hidden]."""
        number = len(between)
        vectors = tf.constant(between.reshape(-1, *between.shape[2:]))
        tiled = {name: tf.constant(_repeated(each, number)) for name, each in batch.items()}
        with tf.GradientTape() as tape:
            tape.watch(vectors)
            self._embeddings.vectors = vectors
            outputs = self.task.sequence_outputs(self._model, tiled)
            value = tf.add_n(
                [
                    tf.reduce_sum(outputs[name] * _repeated(each, number))
                    for name, each in target.weights.items()
                ]
            )
        gradients: np.ndarray = tape.gradient(value, vectors).numpy()
        return gradients.reshape(between.shape)


def _repeated(values: np.ndarray, number: int) -> np.ndarray:
    return np.tile(values, (number, *[1] * (values.ndim - 1)))

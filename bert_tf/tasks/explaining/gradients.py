"""Integrated gradients on word embeddings (Sundararajan et al. 2017), added up by word.

The method follows a straight line of embeddings, from the row with [MASK] in place of every word to
the row itself; special tokens, positions and segments stay. The share of a token is the integral of
the gradient of a logit along this line, times the difference of its embeddings at the two ends. So
the shares add up to the difference of the logits at the ends. The integral is a sum over
Gauss-Legendre points, as in captum; their number doubles until the sum is exact to half a percent.

Gradients need the weights. They are those of the exported folder (`model.safetensors`), in float32,
whichever engine has scored the rows.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.tasks.base.explained import PlacedRow, Target, Word
from bert_tf.tasks.explaining.words import check_explainable, place_words
from bert_tf.tasks.registry import served_task_from_settings
from bert_tf.training.arithmetic import keep_float32_exact
from bert_tf.weights.model_directory import load_all_weights, read_model_directory

# With MiniLM, 10% of 40 questions of TREC are exact with 16 points, 62% with 32 and 98% with 64.
FIRST_POINTS = 32
MOST_POINTS = 512
TOLERANCE = 0.005  # of the difference of the logits
_SMALL = 1e-3  # differences below this need not be exact to their own half percent
_TOKENS_AT_ONCE = 2048  # of a batch; more would take more memory, and would not be faster
_TOKENS_TOGETHER = 2048  # of a group of rows, for which both ends are computed at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Explanation:
    """The shares of a row's words in a logit.

    Attributes:
        target: name of the label, the value or the span.
        logit: the value of the logit.
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
        """Return the explanation as output rows have it; `item` only for texts of a list."""
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


@dataclasses.dataclass(frozen=True)
class _Work:
    """The explanation of one target of a row, to be computed.

    Attributes:
        row: number of the row.
        sequences: the row's sequences among those of its group.
        target: the target.
        logit: its value.
        baseline: its value if all words are masked.
    """

    row: int
    sequences: slice
    target: Target
    logit: float
    baseline: float

    def is_exact(self, shares: np.ndarray) -> bool:
        """Return whether shares add up to the difference of the logits."""
        difference = self.logit - self.baseline
        allowed = TOLERANCE * max(abs(difference), _SMALL)
        return bool(abs(shares.sum() - difference) <= allowed)


@dataclasses.dataclass(frozen=True)
class _Ends:
    """Both ends of the line of embeddings, for the sequences of some rows.

    Attributes:
        vectors: float32 [sequences, length, hidden], embeddings of the tokens.
        masked: the same with all words masked.
        batch: inputs of the model, int32 [sequences, …] by name.
    """

    vectors: np.ndarray
    masked: np.ndarray
    batch: dict[str, np.ndarray]


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
        self._forward: Any = None
        self._backward: Any = None

    def explain(self, row: Mapping[str, Any]) -> list[Explanation]:
        """Explain the prediction of a row, given by its text or list of texts by input.

        Returns:
            An explanation for each label (`multilabel`), each entity (`tagging`), or a single one.
        """
        ((_, explanations),) = self.explain_rows([row])
        return explanations

    def explain_rows(
        self, rows: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[int, list[Explanation]]]:
        """Explain rows, those of similar length together; see `explain`.

        Yields:
            The number of each row, the longest first, and its explanations.
        """
        placed = [place_words(self._host, self._tokenizer, row) for row in rows]
        lengths = np.array([_longest(placed_row) for placed_row in placed], np.int64)
        group: list[int] = []
        for number in np.argsort(-lengths, kind="stable").tolist():
            sequences = sum(len(placed[member].rows.sequences) for member in (*group, number))
            if group and sequences * lengths[group[0]] > _TOKENS_TOGETHER:
                yield from self._explain_group(group, rows, placed)
                group = []
            if lengths[number]:
                group.append(number)
            else:
                yield number, []
        if group:
            yield from self._explain_group(group, rows, placed)

    def _explain_group(
        self,
        group: Sequence[int],
        rows: Sequence[Mapping[str, Any]],
        placed: Sequence[PlacedRow],
    ) -> Iterator[tuple[int, list[Explanation]]]:
        """Explain rows, given by their numbers, whose sequences are padded to one length."""
        length = max(_longest(placed[number]) for number in group)
        ends = self._ends([placed[number] for number in group], length)
        bounds = offsets_of(np.array([len(placed[number].rows.sequences) for number in group]))
        whole = self._outputs(ends.vectors, ends)
        masked = self._outputs(ends.masked, ends)
        work: list[_Work] = []
        for number, (first, last) in zip(group, itertools.pairwise(bounds.tolist()), strict=True):
            own = slice(first, last)
            outputs = {name: values[own] for name, values in whole.items()}
            baseline = {name: values[own] for name, values in masked.items()}
            for target in self._targets(rows[number], placed[number], outputs):
                work.append(
                    _Work(
                        row=number,
                        sequences=own,
                        target=target,
                        logit=target.value(outputs),
                        baseline=target.value(baseline),
                    )
                )
        explained: dict[int, list[Explanation]] = {number: [] for number in group}
        for job, shares in zip(work, self._shares(work, ends, whole), strict=True):
            is_token = ends.batch["input_mask"][job.sequences] == 1
            explanation = _of_words(job, placed[job.row], shares[is_token])
            explained[job.row].append(explanation)
        yield from explained.items()

    def _ends(self, placed: Sequence[PlacedRow], length: int) -> _Ends:
        """Make the embeddings of rows, and of the same rows without words."""
        parts = []
        for placed_row in placed:
            rows = placed_row.rows
            part = rows.sequences.padded(
                np.arange(len(rows.sequences)), length=length, pad_id=self._tokenizer.pad_id
            )
            more_inputs = {name: values.astype(np.int32) for name, values in rows.inputs.items()}
            parts.append({**part, **more_inputs})
        batch = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        word_of_token = np.concatenate([placed_row.word_of for placed_row in placed])
        is_word = np.zeros(batch["input_mask"].shape, bool)
        is_word[batch["input_mask"] == 1] = word_of_token >= 0
        table = self._embeddings.table
        vectors = tf.gather(table, batch["input_word_ids"]).numpy()
        empty = tf.gather(table, self._tokenizer.mask_id).numpy()
        return _Ends(vectors, np.where(is_word[..., None], empty, vectors), batch)

    def _targets(
        self, row: Mapping[str, Any], placed: PlacedRow, outputs: Mapping[str, np.ndarray]
    ) -> list[Target]:
        """Predict a row from the outputs of its sequences; return the targets to explain."""
        chosen = np.arange(len(placed.rows.sequences))
        reduced = self._host.reduce(placed.rows, chosen, dict(outputs))
        columns = {name: [value] for name, value in row.items()}
        predicted = self._host.predict(placed.rows, columns, reduced)
        of_row = {name: values[0] for name, values in predicted.items()}
        return self._host.targets(placed, outputs, of_row)

    def _outputs(self, vectors: np.ndarray, ends: _Ends) -> dict[str, np.ndarray]:
        if self._forward is None:
            self._forward = _traced(self._outputs_of, vectors, ends.batch)
        outputs = self._forward(tf.constant(vectors), _tensors(ends.batch))
        return {name: values.numpy() for name, values in outputs.items()}

    def _outputs_of(self, vectors: tf.Tensor, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        self._embeddings.vectors = vectors
        return dict(self.task.sequence_outputs(self._model, batch))

    def _shares(
        self, work: Sequence[_Work], ends: _Ends, outputs: Mapping[str, np.ndarray]
    ) -> list[np.ndarray]:
        """Return the share of each token for each target, float64 [sequences, length].

        Points are doubled only for targets whose sum is not exact enough yet.
        """
        shares = [np.zeros(0)] * len(work)
        waiting = list(range(len(work)))
        points = FIRST_POINTS
        while waiting:
            jobs = [work[number] for number in waiting]
            integrals = self._integrated(jobs, ends, outputs, points)
            for number, integral in zip(waiting, integrals, strict=True):
                shares[number] = integral
            points *= 2
            if points > MOST_POINTS:
                break
            waiting = [number for number in waiting if not work[number].is_exact(shares[number])]
        return shares

    def _integrated(
        self,
        work: Sequence[_Work],
        ends: _Ends,
        outputs: Mapping[str, np.ndarray],
        points: int,
    ) -> list[np.ndarray]:
        """Integrate all targets with `points` points each; a batch holds as many as fit.

        All points of a target come before those of the next one. So only the sum of the present
        target is kept: it has the hidden dimensions, and the sums of all targets of a long row
        would take gigabytes.

        Returns:
            float64 [sequences, length] for each target, the shares of its tokens.
        """
        places, weights = np.polynomial.legendre.leggauss(points)
        places = (places + 1) / 2
        weights = weights / 2
        # A step is a target at a point, of all sequences of its row.
        sizes = np.repeat([job.sequences.stop - job.sequences.start for job in work], points)
        at_once = max(1, _TOKENS_AT_ONCE // ends.vectors.shape[1])
        batches = (np.cumsum(sizes) - sizes) // at_once
        shares = []
        total = np.zeros(0)
        for steps in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(batches)) + 1):
            gradients = self._gradients_at(
                [(work[step // points], places[step % points]) for step in steps], ends, outputs
            )
            begin = 0
            for step in steps.tolist():
                end = begin + sizes[step]
                point = step % points
                if point == 0:
                    total = np.zeros(gradients[begin:end].shape, np.float64)
                total += weights[point] * gradients[begin:end]
                if point == points - 1:
                    own = work[step // points].sequences
                    shares.append((total * (ends.vectors[own] - ends.masked[own])).sum(axis=-1))
                begin = end
        return shares

    def _gradients_at(
        self,
        steps: Sequence[tuple[_Work, float]],
        ends: _Ends,
        outputs: Mapping[str, np.ndarray],
    ) -> np.ndarray:
        """Return gradients of targets at points between the ends, by the embeddings.

        Args:
            steps: targets, and places on the line from 0, the row without words, to 1.
            ends: ends of the line.
            outputs: outputs of the rows, for the shapes of weights.

        Returns:
            float32 [sequences of all steps, length, hidden].
        """
        numbers = [np.arange(job.sequences.start, job.sequences.stop) for job, _ in steps]
        chosen = np.concatenate(numbers)
        place = np.repeat([place for _, place in steps], list(map(len, numbers)))
        start = ends.masked[chosen]
        end = ends.vectors[chosen]
        between = (start + place[:, None, None] * (end - start)).astype(np.float32)
        batch = {name: values[chosen] for name, values in ends.batch.items()}
        weights = {}
        for name, values in outputs.items():
            parts = []
            for job, _ in steps:
                none = np.zeros_like(values[job.sequences])
                parts.append(job.target.weights.get(name, none))
            weights[name] = np.concatenate(parts).astype(np.float32)
        if self._backward is None:
            self._backward = _traced(self._gradients_of, between, batch, weights)
        gradients: np.ndarray = self._backward(
            tf.constant(between), _tensors(batch), _tensors(weights)
        ).numpy()
        return gradients

    def _gradients_of(
        self,
        vectors: tf.Tensor,
        batch: dict[str, tf.Tensor],
        weights: dict[str, tf.Tensor],
    ) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(vectors)
            outputs = self._outputs_of(vectors, batch)
            value = tf.add_n(
                [tf.reduce_sum(outputs[name] * weight) for name, weight in weights.items()]
            )
        return tape.gradient(value, vectors)


def _longest(placed: PlacedRow) -> int:
    """Return the tokens of a row's longest sequence; 0 if it has none."""
    return int(np.diff(placed.rows.sequences.offsets).max(initial=0))


def _of_words(work: _Work, placed: PlacedRow, shares: np.ndarray) -> Explanation:
    """Add up the shares of a row's tokens, float64 [tokens], by word."""
    is_word = placed.word_of >= 0
    owners = placed.word_of[is_word]
    of_words = np.bincount(owners, weights=shares[is_word], minlength=len(placed.words))
    read = np.unique(owners)
    return Explanation(
        target=work.target.name,
        logit=work.logit,
        baseline=work.baseline,
        words=[placed.words[number] for number in read.tolist()],
        shares=of_words[read],
    )


def _tensors(values: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.constant(array) for name, array in values.items()}


def _traced(
    function: Callable[..., Any], vectors: np.ndarray, *arrays: Mapping[str, np.ndarray]
) -> Any:
    """Make a graph of a function once, for arrays of these ranks in any number and length.

    Without a graph, operations on short texts would take more time in Python than in the model.
    Without open shapes, every new length would be traced again.
    """
    specs = [
        {name: tf.TensorSpec([None] * values.ndim, values.dtype) for name, values in named.items()}
        for named in arrays
    ]
    hidden = tf.TensorSpec([None, None, vectors.shape[-1]], tf.float32)
    return tf.function(function, input_signature=[hidden, *specs], autograph=False)

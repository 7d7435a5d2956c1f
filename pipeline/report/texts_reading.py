"""Reads texts with a model: attention, nearest words, guesses and predictions.

Guesses mask one token at a time. The logarithm of the probability of the real token, given all
others, is its term in the pseudo-log-likelihood of Salazar et al. 2020, "Masked language model
scoring".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.config.sections.finetuning import HEAD
from bert_tf.data.rows.host_rows import pack_host_pairs, pack_host_texts
from bert_tf.data.text.host_wordpiece import HostTokenizer, Tokens
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.engines.engine import decoded_texts
from bert_tf.export.loading import TrainedModel, load_trained_model
from bert_tf.export.saved_model import text_module
from bert_tf.models.encoder import BertEncoder, attention_maps
from bert_tf.models.heads import BertMaskedLM, BertSentenceEncoder
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.base.prediction_rows import RowProbabilities, prediction_rows
from bert_tf.tasks.registry import declared_task
from bert_tf.weights.model_directory import load_all_weights, load_weights, read_model_directory

_MOST_LABELS = 10
_MASK = "[MASK]"
_MASKED_LM_HEAD = "cls.predictions.transform.dense.weight"
_ROWS_AT_ONCE = 32  # of a batch
_SMALLEST_NORM = 1e-12  # of an embedding, to divide by


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """A value under its name, or a label with its probability.

    Attributes:
        name: of the value, as `score` has it, or the label.
        value: as `score` has it; None for a label.
        probability: of the label; None for other values.
    """

    name: str
    value: Any = None
    probability: float | None = None


def predictions(
    trained: TrainedModel, module: TextModule, texts: Sequence[str]
) -> list[Prediction]:
    """Predict a row of texts as `score` does.

    Args:
        trained: the model with its directory.
        module: its inference from texts.
        texts: one for each input of the task.

    Returns:
        Values, then labels with their probabilities; none if the task takes other inputs.
    """
    settings = trained.directory.task or {}
    path = str(trained.directory.path)
    declared = declared_task(settings, path)
    columns = {name: settings["columns"].get(name) for name in declared.inputs}
    names = [name for name, column in columns.items() if column]
    if len(names) != len(texts) or not all(isinstance(columns[name], str) for name in names):
        return []
    inputs = {name: [text] for name, text in zip(names, texts, strict=True)}
    outputs = module.predict(
        {name: tf.constant(column) for name, column in inputs.items()},
        tf.constant(DEFAULT_BATCH_TOKENS, tf.int32),
    )
    predicted = {name: decoded_texts(tensor.numpy()) for name, tensor in outputs.items()}
    fields = [field for field in declared.predictions if not field.is_extra]
    (row,) = prediction_rows(fields, predicted)
    named = [Prediction(name=name, value=value) for name, value in row.items()]
    if declared.probabilities is None or declared.probabilities.list_input is not None:
        return named
    ranking = RowProbabilities.of(declared, settings, f"top-{_MOST_LABELS}", path)
    assert ranking is not None
    (labels,) = ranking.values(predicted, inputs)
    noun = declared.probabilities.noun
    return named + [
        Prediction(name=str(label[noun]), probability=label["score"]) for label in labels
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guess:
    """The most likely tokens at a position.

    Attributes:
        position: in the sequence.
        candidates: tokens and probabilities, the most likely first.
        probability: of the real token; None for [MASK], where there is none.
    """

    position: int
    candidates: Sequence[tuple[str, float]]
    probability: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """A text or a pair as a model reads it.

    Attributes:
        tokens: of the sequence, with [CLS] and [SEP].
        is_cut: whether the text was longer than the model reads.
        second_start: where the second text of a pair begins.
        attention: float32 [layers, heads, query, key].
        neighbors: nearest entries with cosine similarity, by position of a token's first
            occurrence.
        guesses: for each [MASK], else for each of the first tokens masked by itself; None without a
            head for them.
        predictions: of the task, if the model was fine-tuned for one.
    """

    tokens: Sequence[str]
    is_cut: bool
    second_start: int | None = None
    attention: np.ndarray
    neighbors: dict[int, Sequence[tuple[str, float]]]
    guesses: Sequence[Guess] | None
    predictions: Sequence[Prediction] = ()


class TextReader:
    """Reads texts in float32 with the model of a directory.

    Raises:
        UsageError: there is no model.
        InputError: it is damaged.
    """

    def __init__(self, path: str | Path):
        self._directory = read_model_directory(path)
        self._tokenizer = HostTokenizer(self._directory.vocab, lowercase=self._directory.lowercase)
        self._masked_lm: BertMaskedLM | None = None
        self._trained: TrainedModel | None = None
        if self._directory.task is not None:
            self._trained = load_trained_model(self._directory)
            self._module = text_module(self._trained)
            self._encoder = self._trained.encoder
        elif _MASKED_LM_HEAD in self._directory.tensors:
            self._masked_lm = BertMaskedLM(self._directory.config, dtype="float32")
            load_all_weights(self._masked_lm, self._directory)
            self._encoder = self._masked_lm.encoder
        else:
            self._encoder = BertEncoder(self._directory.config, has_pooler=False, dtype="float32")
            self._encoder.build_weights()
            load_weights(self._encoder, self._directory)
        table = ops.convert_to_numpy(ops.copy(self._encoder.embeddings.word_embeddings.value))
        norms = np.linalg.norm(table, axis=1, keepdims=True)
        self._directions = table / np.maximum(norms, _SMALLEST_NORM)

    def read(
        self, text: str, pair: str | None = None, *, most: int, first: int | None = None
    ) -> Reading:
        """Run the model over a text or a pair, in which [MASK] is a token.

        Args:
            text: the text, or the first of a pair.
            pair: the second of a pair.
            most: neighbors and guesses of a token.
            first: tokens, with [CLS], that get neighbors and guesses; all of them if None.

        Returns:
            Attention, neighbors, guesses and predictions.

        Raises:
            UsageError: a text has no tokens, or the model reads the texts of a pair apart.
        """
        texts = [text] if pair is None else [text, pair]
        model = None if self._trained is None else self._trained.model
        if pair is not None and isinstance(model, BertSentenceEncoder):
            raise UsageError(
                f"--text-pair: {self._directory.path} reads single texts; give them with --text"
            )
        flag = "--text" if pair is None else "--text-pair"
        ids = [self._ids(given_text, flag) for given_text in texts]
        row, types, is_cut = self._row(ids)
        tokenizer = self._tokenizer
        # Masks that are cut off count, too: with them, no guesses at other tokens are wanted.
        has_masks = any(tokenizer.mask_id in ids_of_text for ids_of_text in ids)
        guesses = None
        if self._masked_lm is not None:
            guesses = self._guesses(row, types, most, has_masks=has_masks, first=first)
        predicted: Sequence[Prediction] = ()
        if self._trained is not None:
            predicted = predictions(self._trained, self._module, texts)
        attention = attention_maps(self._encoder, row[None], self._type_ids(types)[None])
        return Reading(
            tokens=[tokenizer.vocab[token_id] for token_id in row],
            is_cut=is_cut,
            second_start=None if pair is None else int(np.argmax(types)),
            attention=attention[:, 0],
            neighbors=self._neighbors(row[:first], most),
            guesses=guesses,
            predictions=predicted,
        )

    def _row(self, ids: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, bool]:
        """Join the texts as in training.

        Returns:
            Ids int32 [length], segments int32 [length], and whether the text was cut.
        """
        tokens = [Tokens(of_text, offsets_of(np.array([len(of_text)]))) for of_text in ids]
        longest = self._directory.config.max_position_embeddings
        if len(tokens) == 1:
            rows = pack_host_texts(
                tokens[0], method=HEAD, max_seq_length=longest, tokenizer=self._tokenizer
            )
        else:
            rows = pack_host_pairs(*tokens, max_seq_length=longest, tokenizer=self._tokenizer)
        # In a single text the second segment begins at its end.
        types = (np.arange(len(rows.ids)) >= rows.second_starts[0]).astype(np.int32)
        is_cut = len(rows.ids) < sum(map(len, ids)) + len(ids) + 1
        return rows.ids, types, is_cut

    def _type_ids(self, types: np.ndarray) -> np.ndarray:
        """Return segments that the model has embeddings for; RoBERTa has only one."""
        return np.minimum(types, self._directory.config.type_vocab_size - 1)

    def _ids(self, text: str, flag: str) -> np.ndarray:
        """Tokenize a text around its masks, int32 [tokens]."""
        ids: list[int] = []
        parts = text.split(_MASK)
        tokens = self._tokenizer.tokenize_texts(parts)
        for place in range(len(parts)):
            if place > 0:
                ids.append(self._tokenizer.mask_id)
            ids += tokens.ids[tokens.offsets[place] : tokens.offsets[place + 1]].tolist()
        if not ids:
            raise UsageError(f"{flag} {text!r}: has no tokens; give a text")
        return np.array(ids, np.int32)

    def _neighbors(self, ids: np.ndarray, most: int) -> dict[int, Sequence[tuple[str, float]]]:
        """Return the vocabulary's nearest entries to each ordinary token, by its first position."""
        # A token that occurs again has the same neighbors.
        kinds, firsts = np.unique(ids, return_index=True)
        specials = [self._tokenizer.vocab.index(token) for token in SPECIAL_TOKENS]
        by_position: dict[int, Sequence[tuple[str, float]]] = {}
        for position in sorted(firsts[~np.isin(kinds, specials)].tolist()):
            similarity = self._directions @ self._directions[ids[position]]
            # Each token is nearest to itself, and special tokens mean nothing as words.
            similarity[[ids[position], *specials]] = -np.inf
            by_position[position] = self._highest(similarity, most)
        return by_position

    def _guesses(
        self, ids: np.ndarray, types: np.ndarray, most: int, *, has_masks: bool, first: int | None
    ) -> list[Guess]:
        """Mask tokens one at a time, in batches of rows, and return the model's guesses.

        Args:
            ids: int32 [length], of the sequence.
            types: int32 [length], its segments.
            most: candidates of a guess.
            has_masks: whether the text has [MASK], so that only these are guessed.
            first: tokens from the beginning that are guessed otherwise; all of them if None.
        """
        mask_id = self._tokenizer.mask_id
        ordinary = np.flatnonzero(~np.isin(ids, (self._tokenizer.cls_id, self._tokenizer.sep_id)))
        if first is not None:
            ordinary = ordinary[ordinary < first]
        positions = np.flatnonzero(ids == mask_id) if has_masks else ordinary
        guesses = []
        for begin in range(0, len(positions), _ROWS_AT_ONCE):
            chosen = positions[begin : begin + _ROWS_AT_ONCE]
            rows = np.tile(ids, (len(chosen), 1))
            # One token is masked in each row, so that all others help to guess it.
            rows[np.arange(len(chosen)), chosen] = mask_id
            probabilities = self._probabilities(rows, types, chosen)
            for position, of_row in zip(chosen.tolist(), probabilities, strict=True):
                guess = Guess(
                    position=position,
                    candidates=self._highest(of_row, most),
                    probability=None if has_masks else float(of_row[ids[position]]),
                )
                guesses.append(guess)
        return guesses

    def _highest(self, values: np.ndarray, most: int) -> list[tuple[str, float]]:
        """Return the entries with the highest values; ties are broken by the vocabulary's order.

        Args:
            values: float [vocab].
            most: entries to return.
        """
        best = np.argsort(-values, kind="stable")[:most]
        return [(self._tokenizer.vocab[entry], float(values[entry])) for entry in best]

    def _probabilities(
        self, rows: np.ndarray, types: np.ndarray, positions: np.ndarray
    ) -> np.ndarray:
        """Return float32 [rows, vocab], at one position of each row."""
        inputs: dict[str, Any] = {
            "input_word_ids": rows,
            "input_mask": np.ones_like(rows),
            "input_type_ids": np.tile(self._type_ids(types), (len(rows), 1)),
            "masked_lm_positions": positions[:, None].astype(np.int32),
        }
        assert self._masked_lm is not None
        return np.asarray(ops.convert_to_numpy(ops.softmax(self._masked_lm(inputs)))[:, 0])
